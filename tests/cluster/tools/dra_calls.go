// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	dra "k8s.io/kubelet/pkg/apis/dra/v1"
)

const callLimit = 45 * time.Second // the kubelet's

// draCalls makes one call of the kubelet's: dra-calls SOCKET prepare|unprepare NAMESPACE NAME UID. It prints what
// the driver says of the claim as JSON.
func draCalls() error {
	if len(os.Args) != 6 || os.Args[2] != "prepare" && os.Args[2] != "unprepare" {
		return fmt.Errorf("usage: dra-calls SOCKET prepare|unprepare NAMESPACE NAME UID")
	}
	client := dra.NewDRAPluginClient(dialSocket(os.Args[1]))
	ctx, end := context.WithTimeout(context.Background(), callLimit)
	defer end()
	claims := []*dra.Claim{{Namespace: os.Args[3], Name: os.Args[4], Uid: os.Args[5]}}
	if os.Args[2] == "unprepare" {
		r, err := client.NodeUnprepareResources(ctx, &dra.NodeUnprepareResourcesRequest{Claims: claims})
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(r.Claims[os.Args[5]])
	}
	r, err := client.NodePrepareResources(ctx, &dra.NodePrepareResourcesRequest{Claims: claims})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r.Claims[os.Args[5]])
}
