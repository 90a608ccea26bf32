// SPDX-License-Identifier: Apache-2.0

// Command allocate-1.36 is tools' allocate-batch with the allocator of Kubernetes 1.36, for the rules that clusters of
// that version have. It is built with kubernetes-1.36.mod and the tag kubernetes_1_36.
package main

import (
	"fmt"
	"os"

	"drarun.dev/tests/cluster/allocator"
)

func main() {
	if err := allocator.AllocateBatch(); err != nil {
		fmt.Fprintln(os.Stderr, "allocate-1.36:", err)
		os.Exit(1)
	}
}
