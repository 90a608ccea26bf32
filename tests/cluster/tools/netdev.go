// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
)

// netdev is an interface of a pod: one end of a veth pair whose other end is on the node's bridge
// "rails", which joins all nodes.
type netdev struct {
	Name, Address string
	MTU           int
}

// ends gives the pair's names on the node: the end that goes into the pod, and the one that stays.
func ends(claim types.UID, device string) (string, string) {
	sum := crc32.ChecksumIEEE([]byte(string(claim) + device))
	return fmt.Sprintf("p%08x", sum), fmt.Sprintf("w%08x", sum)
}

// configure takes the interface's name and MTU from the opaque configuration for this driver and request, as DraNet's
// has it.
func (n *netdev) configure(claim *resourceapi.ResourceClaim, driver, request string) error {
	for _, each := range claim.Status.Allocation.Devices.Config {
		if each.Opaque == nil || each.Opaque.Driver != driver ||
			(len(each.Requests) > 0 && !slices.Contains(each.Requests, request)) {
			continue
		}
		wanted := struct {
			Interface struct {
				Name string
				MTU  int
			}
		}{}
		if err := json.Unmarshal(each.Opaque.Parameters.Raw, &wanted); err != nil {
			return fmt.Errorf("the configuration of request %s: %v", request, err)
		}
		if wanted.Interface.Name != "" {
			n.Name = wanted.Interface.Name
		}
		if wanted.Interface.MTU != 0 {
			n.MTU = wanted.Interface.MTU
		}
	}
	return nil
}

// make makes the pair unless it is there, and gives the hook that moves one end into the pod.
func (n *netdev) make(claim types.UID, device string) (map[string]any, error) {
	pod, wire := ends(claim, device)
	if exec.Command("ip", "link", "show", wire).Run() != nil {
		if err := ip("link", "add", pod, "type", "veth", "peer", "name", wire); err != nil {
			return nil, err
		}
	}
	if err := ip("link", "set", wire, "master", "rails", "up"); err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	hook := filepath.Join(filepath.Dir(program), "dra-netdev")
	mtu := n.MTU
	if mtu == 0 {
		mtu = 1500
	}
	return map[string]any{"hookName": "createRuntime", "path": hook,
		"args": []any{"dra-netdev", pod, n.Name, n.Address, strconv.Itoa(mtu)}}, nil
}

// removeNetdevs takes away the pairs of a claim, wherever their other ends are, by its CDI file.
func removeNetdevs(path string) error {
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	var spec struct {
		Devices []struct {
			ContainerEdits struct{ Hooks []struct{ Args []string } }
		}
	}
	if err == nil {
		err = json.Unmarshal(text, &spec)
	}
	if err != nil {
		return err
	}
	for _, device := range spec.Devices {
		for _, hook := range device.ContainerEdits.Hooks {
			wire := "w" + hook.Args[1][1:]
			if exec.Command("ip", "link", "show", wire).Run() == nil {
				if err := ip("link", "del", wire); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// draNetdev is a createRuntime hook: dra-netdev HERE NAME ADDRESS MTU moves the interface HERE into the
// container's network and sets it up there, unless another container of the pod had that done.
func draNetdev() error {
	var state struct{ Pid int }
	if err := json.NewDecoder(os.Stdin).Decode(&state); err != nil {
		return err
	}
	here, name, address, mtu := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	inside := func(words ...string) error {
		all := append([]string{"-t", strconv.Itoa(state.Pid), "-n", "ip"}, words...)
		out, err := exec.Command("nsenter", all...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("in the pod: ip %v: %s", words, out)
		}
		return nil
	}
	if inside("link", "show", name) == nil {
		return nil
	}
	if err := ip("link", "set", here, "netns", strconv.Itoa(state.Pid), "name", name); err != nil {
		return err
	}
	if err := inside("link", "set", name, "mtu", mtu, "up"); err != nil {
		return err
	}
	return inside("addr", "add", address, "dev", name)
}
