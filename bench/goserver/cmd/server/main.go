// Command server is a metrics server on the Go library custom-metrics-apiserver with a fixed set of metrics.
//
// It is the reference our own server is compared with: its answers are the wire contract (record them and replay them),
// and its speed is the rival in the benchmark. Every filter of the library stays at its default: it authenticates and
// authorizes against the cluster named by the kubeconfig files. The metrics and their values are in fixture.go.
//
//	server --secure-port=16444 --bind-address=127.0.0.1 --lister-kubeconfig=K \
//	    --authentication-kubeconfig=K --authorization-kubeconfig=K
//
// Every other flag is the library's own: see server --help.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/pflag"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/logs"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver/metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/cmd"
)

// title is the title of the OpenAPI documents, and so a part of their Etags: the recorded server had this one.
const title = "harness"

func main() {
	logs.InitLogs()
	defer logs.FlushLogs()
	if err := run(genericapiserver.SetupSignalContext(), os.Args[1:]); err != nil && !errors.Is(err, pflag.ErrHelp) {
		klog.Fatalf("metrics server: %v", err)
	}
}

func run(ctx context.Context, arguments []string) error {
	adapter := &cmd.AdapterBase{Name: title, FlagSet: pflag.NewFlagSet("server", pflag.ContinueOnError)}
	logs.AddFlags(adapter.Flags())
	if err := adapter.Flags().Parse(arguments); err != nil {
		return err
	}
	adapter.WithCustomMetrics(customFixture{})
	adapter.WithExternalMetrics(externalFixture{})
	if err := metrics.RegisterMetrics(legacyregistry.Register); err != nil {
		return err
	}
	return adapter.Run(ctx)
}
