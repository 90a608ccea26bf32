// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	dra "k8s.io/kubelet/pkg/apis/dra/v1"
)

// times of one round, in microseconds.
type times struct {
	Prepare   int64 `json:"prepare"`
	Write     int64 `json:"write"`
	Unprepare int64 `json:"unprepare"`
}

// prepareTimes prepares and unprepares a claim as the kubelet does, and in turn with it writes and syncs
// a file of as many bytes as the driver's checkpoint of the claim has. It prints a line of JSON a round:
// prepare-times -socket FILE -checkpoint FILE -namespace NAME -name NAME -uid UID -rounds N -devices N
func prepareTimes() error {
	claim := &dra.Claim{}
	socket := flag.String("socket", "", "of the driver's calls")
	checkpoint := flag.String("checkpoint", "", "what the driver keeps of the claim while it is prepared")
	rounds := flag.Int("rounds", 100, "how often")
	devices := flag.Int("devices", 1, "how many the claim has")
	flag.StringVar(&claim.Namespace, "namespace", "default", "the claim's")
	flag.StringVar(&claim.Name, "name", "", "the claim's")
	flag.StringVar(&claim.Uid, "uid", "", "the claim's")
	flag.Parse()
	client := dra.NewDRAPluginClient(dialSocket(*socket))
	beside := filepath.Join(filepath.Dir(*checkpoint), "beside")
	defer os.Remove(beside)
	out := json.NewEncoder(os.Stdout)
	for i := 0; i < *rounds; i++ {
		var t times
		begin := time.Now()
		prepared, err := client.NodePrepareResources(context.Background(), &dra.NodePrepareResourcesRequest{Claims: []*dra.Claim{claim}})
		t.Prepare = time.Since(begin).Microseconds()
		if err != nil {
			return err
		}
		if answer := prepared.Claims[claim.Uid]; answer == nil || answer.Error != "" || len(answer.Devices) != *devices {
			return fmt.Errorf("prepare: %v", prepared)
		}
		bytes, err := os.ReadFile(*checkpoint)
		if err != nil {
			return err
		}
		begin = time.Now()
		if err := writeDurably(beside, bytes); err != nil {
			return err
		}
		t.Write = time.Since(begin).Microseconds()
		begin = time.Now()
		unprepared, err := client.NodeUnprepareResources(context.Background(), &dra.NodeUnprepareResourcesRequest{Claims: []*dra.Claim{claim}})
		t.Unprepare = time.Since(begin).Microseconds()
		if err != nil {
			return err
		}
		if answer := unprepared.Claims[claim.Uid]; answer == nil || answer.Error != "" {
			return fmt.Errorf("unprepare: %v", unprepared)
		}
		out.Encode(t)
	}
	return nil
}

// writeDurably makes a new file: what a file that is there costs, is less.
func writeDurably(path string, bytes []byte) error {
	os.Remove(path)
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Write(bytes); err != nil {
		return err
	}
	return file.Sync()
}
