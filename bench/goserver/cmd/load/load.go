package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

type figures struct {
	Requests     int            `json:"requests"`
	Errors       map[string]int `json:"errors"`
	RequestsPerS float64        `json:"requests_per_s"`
	P50Ms        float64        `json:"p50_ms"`
	P99Ms        float64        `json:"p99_ms"`
}

type load struct {
	options  *options
	tls      *tls.Config
	start    time.Time
	issued   atomic.Int64
	sayFirst sync.Once
}

// tally holds the results of one stream after the warm-up; each stream fills its own, without a lock.
type tally struct {
	latencies []time.Duration
	errors    map[string]int
}

func newLoad(o *options, config *tls.Config) *load {
	return &load{options: o, tls: config}
}

func (l *load) run() *figures {
	tallies := make([]tally, l.options.connections*l.options.streams)
	var streams sync.WaitGroup
	l.start = time.Now()
	var client *http.Client
	for i := range tallies {
		if i%l.options.streams == 0 {
			client = l.newClient()
		}
		tallies[i].errors = map[string]int{}
		mine := client
		streams.Go(func() { l.stream(mine, &tallies[i]) })
	}
	streams.Wait()
	return l.summary(tallies)
}

func (l *load) newClient() *http.Client {
	dialer := &net.Dialer{Timeout: l.options.timeout}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(!l.options.http2)
	protocols.SetHTTP2(l.options.http2)
	return &http.Client{
		Timeout: l.options.timeout,
		Transport: &http.Transport{
			DialContext:        dialer.DialContext,
			TLSClientConfig:    l.tls.Clone(),
			MaxConnsPerHost:    1,
			DisableCompression: true,
			Protocols:          protocols,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (l *load) stream(client *http.Client, seen *tally) {
	measured, end := l.start.Add(l.options.warmup), l.start.Add(l.options.warmup+l.options.duration)
	for {
		number := l.issued.Add(1) - 1
		due := l.due(number)
		if !due.Before(end) {
			return
		}
		time.Sleep(time.Until(due))
		outcome := l.ask(client, number)
		if due.Before(measured) {
			continue
		}
		seen.latencies = append(seen.latencies, time.Since(due))
		if outcome != "" {
			seen.errors[outcome]++
		}
	}
}

// due is the time at which a request should leave: in a closed loop, now.
func (l *load) due(number int64) time.Time {
	if l.options.ratePerS == 0 {
		return time.Now()
	}
	return l.start.Add(time.Duration(float64(number) / l.options.ratePerS * float64(time.Second)))
}

// ask returns "" for a 2xx answer, otherwise the status or "failed".
func (l *load) ask(client *http.Client, number int64) string {
	status, err := l.exchange(client, number)
	switch {
	case err != nil:
		l.sayFirst.Do(func() { fmt.Fprintln(os.Stderr, "load: first failure:", err) })
		return "failed"
	case status >= 200 && status < 300:
		return ""
	}
	return strconv.Itoa(status)
}

func (l *load) exchange(client *http.Client, number int64) (int, error) {
	request, err := http.NewRequest(http.MethodGet, l.options.address(number), nil)
	if err != nil {
		return 0, err
	}
	request.Header = l.options.headers
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

func (l *load) summary(tallies []tally) *figures {
	all := &figures{Errors: map[string]int{}}
	var latencies []time.Duration
	for _, seen := range tallies {
		latencies = append(latencies, seen.latencies...)
		for outcome, count := range seen.errors {
			all.Errors[outcome] += count
		}
	}
	slices.Sort(latencies)
	all.Requests = len(latencies)
	untilLast := max(l.options.duration, time.Since(l.start)-l.options.warmup)
	all.RequestsPerS = math.Round(float64(len(latencies))/untilLast.Seconds()*10) / 10
	all.P50Ms, all.P99Ms = quantileMs(latencies, 0.5), quantileMs(latencies, 0.99)
	return all
}

// quantileMs is the smallest latency that at least this share of the sorted latencies does not exceed; 0 for none.
func quantileMs(sorted []time.Duration, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(share * float64(len(sorted))))
	return float64(sorted[max(rank, 1)-1].Microseconds()) / 1000
}
