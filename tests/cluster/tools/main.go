// SPDX-License-Identifier: Apache-2.0

// Command tools is the test bed's own programs in one, chosen by the name that it is called by.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"drarun.dev/tests/cluster/allocator"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	commands := map[string]func() error{
		"allocate":       allocator.Allocate,
		"allocate-batch": allocator.AllocateBatch,
		"dra-calls":      draCalls,
		"dra-driver":     draDriver,
		"fake-kubelet":   fakeKubelet,
		"kubelet-calls":  kubeletCalls,
		"prepare-times":  prepareTimes,
	}
	name := filepath.Base(os.Args[0])
	command := commands[name]
	if command == nil {
		fmt.Fprintln(os.Stderr, "tools: called by an unknown name:", name)
		os.Exit(2)
	}
	if err := command(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// untilSignal ends with SIGTERM or SIGINT.
func untilSignal() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
}

// connect parses the command line and speaks to the server that -kubeconfig names, as fast as it likes.
func connect() (*kubernetes.Clientset, error) {
	path := flag.String("kubeconfig", "", "the API server and who we are there")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *path)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 1000, 2000
	return kubernetes.NewForConfig(config)
}
