// SPDX-License-Identifier: Apache-2.0

// Command tools is the test bed's own programs in one, chosen by the name that it is called by.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	commands := map[string]func() error{
		"allocate":       allocate,
		"allocate-batch": allocateBatch,
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
