// Command load sends requests to an HTTP(S) server on a number of connections and prints one JSON line of results.
//
// It is the one client for every server that is compared: our own and the Go server beside it. By default each
// connection sends its next request as soon as it has an answer (closed loop). With -rate the requests are due at fixed
// times whether or not the answers came (open loop), and a latency counts from the due time, so a server that stalls
// cannot hide it.
//
//	load -cert C.pem -key K.pem -connections 25 -duration 10s -header 'Accept: application/json' URL...
//
// The URLs are requested in turn. With -modulo N each %d in a URL is replaced by the request's number modulo N.
//
// The line holds: requests (all that were due after the warm-up), errors (by status outside 2xx, or "failed" without
// an answer; the first failure goes to stderr), requests_per_s (up to the last answer), p50_ms and p99_ms.
package main

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

type options struct {
	urls              []string
	modulo            int
	headers           http.Header
	certFile, keyFile string
	connections       int
	streams           int
	http2             bool
	ratePerS          float64
	warmup, duration  time.Duration
	timeout           time.Duration
	stalled           int
}

func main() {
	chosen, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = measure(chosen)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func parse(arguments []string) (*options, error) {
	o := &options{headers: http.Header{}}
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	flags.StringVar(&o.certFile, "cert", "", "client certificate (PEM)")
	flags.StringVar(&o.keyFile, "key", "", "key of the client certificate (PEM)")
	flags.IntVar(&o.connections, "connections", 1, "number of connections")
	flags.BoolVar(&o.http2, "h2", false, "speak HTTP/2 (default HTTP/1.1)")
	flags.IntVar(&o.streams, "streams", 1, "requests at the same time on each HTTP/2 connection")
	flags.Float64Var(&o.ratePerS, "rate", 0, "requests per second in all, due at fixed times (0: closed loop)")
	flags.DurationVar(&o.warmup, "warmup", time.Second, "time before the measurement; its requests do not count")
	flags.DurationVar(&o.duration, "duration", 10*time.Second, "time of the measurement")
	flags.DurationVar(&o.timeout, "timeout", 30*time.Second, "limit of one request")
	flags.IntVar(&o.stalled, "stalled", 0, "connections opened first and held, which never finish the TLS handshake")
	flags.IntVar(&o.modulo, "modulo", 0, "replace %d in the URLs by the request's number modulo this")
	flags.Func("header", "`Name: value`, repeatable", o.addHeader)
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	o.urls = flags.Args()
	return o, o.check()
}

func (o *options) addHeader(line string) error {
	name, value, found := strings.Cut(line, ":")
	if !found {
		return fmt.Errorf("expected Name: value, got %q", line)
	}
	o.headers.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	return nil
}

func (o *options) check() error {
	switch {
	case len(o.urls) == 0:
		return errors.New("expected at least one URL")
	case o.modulo < 0 || o.ratePerS < 0:
		return errors.New("-modulo and -rate must not be negative")
	case o.connections < 1 || o.streams < 1:
		return errors.New("-connections and -streams must be at least 1")
	case o.streams > 1 && !o.http2:
		return errors.New("-streams needs -h2: HTTP/1.1 carries one request at a time")
	}
	return nil
}

// address is the URL of the request with this number.
func (o *options) address(number int64) string {
	pattern := o.urls[number%int64(len(o.urls))]
	if o.modulo == 0 {
		return pattern
	}
	return strings.ReplaceAll(pattern, "%d", strconv.FormatInt(number%int64(o.modulo), 10))
}

func (o *options) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{InsecureSkipVerify: true} // a benchmark on this machine: servers sign their own certificates
	if o.certFile == "" {
		return config, nil
	}
	pair, err := tls.LoadX509KeyPair(o.certFile, o.keyFile)
	config.Certificates = []tls.Certificate{pair}
	return config, err
}

func measure(o *options) error {
	config, err := o.tlsConfig()
	if err != nil {
		return err
	}
	target, err := url.Parse(o.address(0))
	if err != nil {
		return err
	}
	held, err := stall(target.Host, o.stalled)
	defer closeAll(held)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(newLoad(o, config).run())
}
