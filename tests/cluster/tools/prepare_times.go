// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	dra "k8s.io/kubelet/pkg/apis/dra/v1"
)

// times of one round, in microseconds.
type times struct {
	Prepare   int64 `json:"prepare"`
	Write     int64 `json:"write"`
	Unprepare int64 `json:"unprepare"`
}

// prepareTimes prepares and unprepares a claim as the kubelet does, one driver of it after the other, and in
// turn with it writes and syncs a file of as many bytes as their checkpoints of the claim have. It prints a
// line of JSON a round:
// prepare-times -socket FILE,.. -checkpoint FILE,.. -namespace NAME -name NAME -uid UID -rounds N -pause 1s -devices N
func prepareTimes() error {
	claim := &dra.Claim{}
	socket := flag.String("socket", "", "of the drivers' calls")
	checkpoint := flag.String("checkpoint", "", "what the drivers keep of the claim while it is prepared")
	rounds := flag.Int("rounds", 100, "how often")
	pause := flag.Duration("pause", 0, "between the two, for what comes behind an answer")
	devices := flag.Int("devices", 1, "how many the claim has")
	flag.StringVar(&claim.Namespace, "namespace", "default", "the claim's")
	flag.StringVar(&claim.Name, "name", "", "the claim's")
	flag.StringVar(&claim.Uid, "uid", "", "the claim's")
	flag.Parse()
	var clients []dra.DRAPluginClient
	for _, path := range strings.Split(*socket, ",") {
		clients = append(clients, dra.NewDRAPluginClient(dialSocket(path)))
	}
	checkpoints := strings.Split(*checkpoint, ",")
	beside := filepath.Join(filepath.Dir(checkpoints[0]), "beside")
	defer os.Remove(beside)
	out := json.NewEncoder(os.Stdout)
	for i := 0; i < *rounds; i++ {
		var t times
		begin := time.Now()
		if err := prepareOnce(clients, claim, *devices); err != nil {
			return err
		}
		t.Prepare = time.Since(begin).Microseconds()
		var bytes []byte
		for _, path := range checkpoints {
			one, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			bytes = append(bytes, one...)
		}
		begin = time.Now()
		if err := writeDurably(beside, bytes); err != nil {
			return err
		}
		t.Write = time.Since(begin).Microseconds()
		time.Sleep(*pause)
		begin = time.Now()
		if err := unprepareOnce(clients, claim); err != nil {
			return err
		}
		t.Unprepare = time.Since(begin).Microseconds()
		out.Encode(t)
	}
	return nil
}

func prepareOnce(clients []dra.DRAPluginClient, claim *dra.Claim, devices int) error {
	count := 0
	for _, client := range clients {
		prepared, err := client.NodePrepareResources(context.Background(), &dra.NodePrepareResourcesRequest{Claims: []*dra.Claim{claim}})
		if err != nil {
			return err
		}
		answer := prepared.Claims[claim.Uid]
		if answer == nil || answer.Error != "" {
			return fmt.Errorf("prepare: %v", prepared)
		}
		count += len(answer.Devices)
	}
	if count != devices {
		return fmt.Errorf("prepare: %d devices", count)
	}
	return nil
}

func unprepareOnce(clients []dra.DRAPluginClient, claim *dra.Claim) error {
	for _, client := range clients {
		unprepared, err := client.NodeUnprepareResources(context.Background(), &dra.NodeUnprepareResourcesRequest{Claims: []*dra.Claim{claim}})
		if err != nil {
			return err
		}
		if answer := unprepared.Claims[claim.Uid]; answer == nil || answer.Error != "" {
			return fmt.Errorf("unprepare: %v", unprepared)
		}
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
