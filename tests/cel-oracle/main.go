// SPDX-License-Identifier: Apache-2.0

// cel-oracle evaluates DRA device selectors with the code of the Kubernetes scheduler. Each line of
// stdin is {"expression", "driver", "device"}, the device as a ResourceSlice has it (v1); each line
// of stdout is {"kind": "true" | "false" | "compile" | "error" | "cost", "text", "cost", "estimate"}.
// estimate is the worst case that the API server compares with its limit when a claim is created.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

type question struct {
	Expression string             `json:"expression"`
	Driver     string             `json:"driver"`
	Device     resourceapi.Device `json:"device"`
}

type answer struct {
	Kind     string `json:"kind"`
	Text     string `json:"text,omitempty"`
	Cost     uint64 `json:"cost,omitempty"`
	Estimate uint64 `json:"estimate,omitempty"`
}

func ask(q question) (result answer) {
	// a list or map literal with "?" before a value of unknown type makes cel-go's validator panic
	defer func() {
		if reason := recover(); reason != nil {
			result = answer{Kind: "compile", Text: fmt.Sprint("panic: ", reason)}
		}
	}()
	features := dracel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true}
	program := dracel.GetCompiler(features).CompileCELExpression(q.Expression, dracel.Options{})
	if program.Error != nil {
		return answer{Kind: "compile", Text: program.Error.Error()}
	}
	device := dracel.Device{
		Driver:                   q.Driver,
		AllowMultipleAllocations: q.Device.AllowMultipleAllocations,
		Attributes:               q.Device.Attributes,
		Capacity:                 q.Device.Capacity,
	}
	match, details, err := program.DeviceMatches(context.Background(), device)
	result = answer{Kind: fmt.Sprint(match), Estimate: program.MaxCost}
	if cost := details.ActualCost(); cost != nil {
		result.Cost = *cost
	}
	if err != nil {
		result.Kind, result.Text = "error", err.Error()
		if strings.Contains(result.Text, "actual cost limit exceeded") {
			result.Kind = "cost"
		}
	}
	return result
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 16<<20)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var q question
		if err := json.Unmarshal(in.Bytes(), &q); err != nil {
			fmt.Fprintln(os.Stderr, "cel-oracle: a question that is not JSON of the right shape:", err)
			os.Exit(1)
		}
		if err := out.Encode(ask(q)); err != nil {
			os.Exit(1)
		}
	}
	if in.Err() != nil {
		fmt.Fprintln(os.Stderr, "cel-oracle:", in.Err())
		os.Exit(1)
	}
}
