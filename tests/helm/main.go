// SPDX-License-Identifier: Apache-2.0
// helm-template DIR [VALUES-FILE]: a chart's manifests as `helm template drarun DIR` prints them.
package main

import (
	"fmt"
	"os"
	"sort"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

func render(dir string, files []string) error {
	chart, err := loader.Load(dir)
	if err != nil {
		return err
	}
	given := chartutil.Values{}
	for _, file := range files {
		one, err := chartutil.ReadValuesFile(file)
		if err != nil {
			return err
		}
		given = chartutil.CoalesceTables(one, given)
	}
	if err := chartutil.ValidateAgainstSchema(chart, given); err != nil {
		return err
	}
	values, err := chartutil.ToRenderValues(chart, given, chartutil.ReleaseOptions{Name: "drarun", Namespace: "drarun-system", IsInstall: true}, nil)
	if err != nil {
		return err
	}
	made, err := engine.Engine{Strict: true}.Render(chart, values)
	if err != nil {
		return err
	}
	names := []string{}
	for name := range made {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Printf("---\n# Source: %s\n%s\n", name, made[name])
	}
	return nil
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: helm-template DIR [VALUES-FILE...]")
		os.Exit(64)
	}
	if err := render(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
