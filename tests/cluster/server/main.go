// SPDX-License-Identifier: Apache-2.0

// Command server is etcd and kube-apiserver in one program, chosen by the name that it is called
// by: one link, and half the bytes of two.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	default:
		fmt.Fprintln(os.Stderr, "server: called by an unknown name:", name)
		os.Exit(2)
	}
}
