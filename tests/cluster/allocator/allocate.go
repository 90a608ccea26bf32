// SPDX-License-Identifier: Apache-2.0

// Package allocator asks the scheduler's own allocator, that of the Kubernetes which it is built with.
package allocator

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// features are those that Kubernetes has on; fractions.go adds to them.
var features = structured.Features{
	AdminAccess:            true,
	ConsumableCapacity:     true,
	DeviceBindingAndStatus: true,
	DeviceTaints:           true,
	PartitionableDevices:   true,
	PrioritizedList:        true,
}

type input struct {
	Slices  []*resourceapi.ResourceSlice
	Classes []*resourceapi.DeviceClass
	Claims  []*resourceapi.ResourceClaim
}

func (in *input) List() ([]*resourceapi.DeviceClass, error) { return in.Classes, nil }

func (in *input) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range in.Classes {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, fmt.Errorf("no device class %q", name)
}

// setDefaults does what the API server does for claims.
func setDefaults(claim *resourceapi.ResourceClaim) {
	for i := range claim.Spec.Devices.Requests {
		request := &claim.Spec.Devices.Requests[i]
		if exactly := request.Exactly; exactly != nil {
			setDefaultMode(&exactly.AllocationMode, &exactly.Count)
		}
		for j := range request.FirstAvailable {
			alternative := &request.FirstAvailable[j]
			setDefaultMode(&alternative.AllocationMode, &alternative.Count)
		}
	}
}

func setDefaultMode(mode *resourceapi.DeviceAllocationMode, count *int64) {
	if *mode == "" {
		*mode = resourceapi.DeviceAllocationModeExactCount
	}
	if *mode == resourceapi.DeviceAllocationModeExactCount && *count == 0 {
		*count = 1
	}
}

// Allocate runs the scheduler's allocator on one node. It reads
// {"slices": [ResourceSlice], "classes": [DeviceClass], "claims": [ResourceClaim]}, all of
// resource.k8s.io/v1, from standard input, allocates the claims one after another as the scheduler
// does for pods, and prints a list with each claim's results, null where the node cannot meet it.
func Allocate() error {
	var in input
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		return err
	}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: *in.Slices[0].Spec.NodeName}}
	cache := cel.NewCache(100, cel.Features{})
	taken := sets.New[structured.DeviceID]()
	answers := []any{}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for _, claim := range in.Claims {
		setDefaults(claim)
		state := structured.AllocatedState{AllocatedDevices: taken}
		allocator, err := structured.NewAllocator(ctx, features, state, &in, in.Slices, cache)
		if err != nil {
			return err
		}
		results, err := allocator.Allocate(ctx, node, []*resourceapi.ResourceClaim{claim})
		if err != nil {
			return fmt.Errorf("claim %s: %w", claim.Name, err)
		}
		if len(results) == 0 {
			answers = append(answers, nil)
			continue
		}
		answers = append(answers, results[0].Devices.Results)
		for _, result := range results[0].Devices.Results {
			taken.Insert(structured.MakeDeviceID(result.Driver, result.Pool, result.Device))
		}
	}
	return json.NewEncoder(os.Stdout).Encode(answers)
}
