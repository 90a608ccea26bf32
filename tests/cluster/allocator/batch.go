// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sort"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// question is one line of input: a cluster, and a number of workers that all have the same claim.
type question struct {
	Slices    []*resourceapi.ResourceSlice
	Classes   []*resourceapi.DeviceClass
	Nodes     []*v1.Node
	Allocated []*resourceapi.ResourceClaim // what is there before
	Claim     resourceapi.ResourceClaimSpec
	Workers   int
	Lists     bool // gate DRAListTypeAttributes
}

// placed is a worker that found a node. Nodes are filled one after another, in the order of their
// names; those that are left when all workers are placed are asked whether they would end it all, since
// the scheduler looks at many nodes at once.
type placed struct {
	Node    string                                      `json:"node"`
	Results []resourceapi.DeviceRequestAllocationResult `json:"results"`
}

type answer struct {
	Workers []placed `json:"workers"`
	Stop    string   `json:"stop,omitempty"` // the error with which the scheduler gives up
}

// stateOf is what the plugin dynamicresources keeps (allocateddevices.go, foreachAllocatedDevice).
func stateOf(claims []*resourceapi.ResourceClaim) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
			switch {
			case result.AdminAccess != nil && *result.AdminAccess:
			case result.ShareID != nil:
				state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, result.ShareID))
				if result.ConsumedCapacity != nil {
					state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
				}
			default:
				state.AllocatedDevices.Insert(id)
			}
		}
	}
	return state
}

func (q *question) allocate(ctx context.Context, cache *cel.Cache, node *v1.Node) (*resourceapi.AllocationResult, error) {
	enabled := features
	enabled.ListTypeAttributes = q.Lists
	classes := &input{Classes: q.Classes}
	allocator, err := structured.NewAllocator(ctx, enabled, stateOf(q.Allocated), classes, q.Slices, cache)
	if err != nil {
		return nil, err
	}
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim"}, Spec: *q.Claim.DeepCopy()}
	setDefaults(claim)
	results, err := allocator.Allocate(ctx, node, []*resourceapi.ResourceClaim{claim})
	if err != nil || len(results) == 0 {
		return nil, err
	}
	return &results[0], nil
}

// fill places workers on a node until it is full, or all are placed.
func (q *question) fill(ctx context.Context, cache *cel.Cache, node *v1.Node, result *answer) error {
	for {
		allocation, err := q.allocate(ctx, cache, node)
		if err != nil || allocation == nil || len(result.Workers) == q.Workers {
			return err
		}
		result.Workers = append(result.Workers, placed{node.Name, allocation.Devices.Results})
		q.Allocated = append(q.Allocated, &resourceapi.ResourceClaim{
			Status: resourceapi.ResourceClaimStatus{Allocation: allocation}})
		if len(result.Workers) == q.Workers {
			return nil
		}
	}
}

func (q *question) answer(cache *cel.Cache) answer {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	result := answer{Workers: []placed{}}
	sort.Slice(q.Nodes, func(i, j int) bool { return q.Nodes[i].Name < q.Nodes[j].Name })
	for _, node := range q.Nodes {
		err := q.fill(ctx, cache, node, &result)
		// an invalid pool is no more than a node without room
		if err != nil && err.Error() != "invalid resource pools were encountered" {
			result.Stop = err.Error()
			break
		}
	}
	return result
}

// AllocateBatch answers each line of standard input with one of standard output.
func AllocateBatch() error {
	lines := json.NewDecoder(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	caches := map[bool]*cel.Cache{}
	for _, lists := range []bool{false, true} {
		caches[lists] = cel.NewCache(1000, cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: lists})
	}
	for {
		var q question
		if err := lines.Decode(&q); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("a question that is not JSON of the right shape: %w", err)
		}
		if err := out.Encode(q.answer(caches[q.Lists])); err != nil {
			return err
		}
	}
}
