// SPDX-License-Identifier: Apache-2.0

// foreign-api reads manifests of other systems, one JSON object a line, with those systems' own Go
// types: an unknown key or a wrong type is an error. For each line it writes one: the object as those
// types write it again, or {"error": "..."}.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	kjson "sigs.k8s.io/json"
)

const lineMax = 16 << 20

func object(apiVersion, kind string) any {
	switch apiVersion + " " + kind {
	case "ray.io/v1 RayCluster":
		return &rayv1.RayCluster{}
	case "ray.io/v1 RayJob":
		return &rayv1.RayJob{}
	case "trainer.kubeflow.org/v1alpha1 TrainJob":
		return &trainer.TrainJob{}
	case "trainer.kubeflow.org/v1alpha1 TrainingRuntime":
		return &trainer.TrainingRuntime{}
	}
	return nil
}

func read(line []byte) (any, error) {
	var head struct{ APIVersion, Kind string }
	if err := json.Unmarshal(line, &head); err != nil {
		return nil, err
	}
	made := object(head.APIVersion, head.Kind)
	if made == nil {
		return nil, fmt.Errorf("no type for %s %s", head.APIVersion, head.Kind)
	}
	unknown, err := kjson.UnmarshalStrict(line, made)
	if err == nil {
		err = errors.Join(unknown...)
	}
	return made, err
}

func answer(lines *bufio.Scanner, out *json.Encoder) error {
	for lines.Scan() {
		made, err := read(lines.Bytes())
		if err != nil {
			made = map[string]string{"error": err.Error()}
		}
		if err := out.Encode(made); err != nil {
			return err
		}
	}
	return lines.Err()
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, lineMax)
	if err := answer(lines, json.NewEncoder(os.Stdout)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
