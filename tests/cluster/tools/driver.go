// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

const cdiFolder = "/var/run/cdi"

// settings is the file that -settings names; it is read again at each call of the kubelet, and SIGHUP
// publishes its devices again.
type settings struct {
	Devices []setDevice
	// Refuse is the error that Prepare gives; Hang has it wait until the file says no more.
	Refuse string
	Hang   bool
}

type setDevice struct {
	Device resourceapi.Device
	// Edits is what CDI calls containerEdits, with which a container gets the device.
	Edits map[string]any
	// Netdev is a network interface that is made for the claim and moved into the pod.
	Netdev *netdev
}

type driver struct {
	name, node, path string
	client           *kubernetes.Clientset
}

// draDriver is a DRA driver whose devices are what a file says they are.
func draDriver() error {
	d := &driver{}
	flag.StringVar(&d.name, "driver", "", "the driver's name")
	flag.StringVar(&d.node, "node", "", "the node's name")
	flag.StringVar(&d.path, "settings", "", "the file of devices and faults")
	register := flag.Bool("register", true, "make the driver known to the kubelet")
	var err error
	if d.client, err = connect(); err != nil {
		return err
	}
	ctx, cancel := untilSignal()
	defer cancel()
	sockets := filepath.Join(kubeletplugin.KubeletPluginsDir, d.name)
	if err := os.MkdirAll(sockets, 0o750); err != nil {
		return err
	}
	if err := os.MkdirAll(cdiFolder, 0o755); err != nil {
		return err
	}
	helper, err := kubeletplugin.Start(ctx, d, kubeletplugin.DriverName(d.name), kubeletplugin.NodeName(d.node),
		kubeletplugin.KubeClient(d.client), kubeletplugin.RegistrationService(*register),
		kubeletplugin.Serialize(false)) // a claim that hangs must not stop the others
	if err != nil {
		return err
	}
	defer helper.Stop()
	again := make(chan os.Signal, 1)
	signal.Notify(again, syscall.SIGHUP)
	for {
		if err := d.publish(ctx, helper); err != nil {
			return err
		}
		select {
		case <-again:
		case <-ctx.Done():
			return nil
		}
	}
}

func (d *driver) read() (settings, error) {
	var s settings
	text, err := os.ReadFile(d.path)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

func (d *driver) publish(ctx context.Context, helper *kubeletplugin.Helper) error {
	s, err := d.read()
	if err != nil {
		return err
	}
	var slice resourceslice.Slice
	for _, each := range s.Devices {
		slice.Devices = append(slice.Devices, each.Device)
	}
	return helper.PublishResources(ctx, resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{
		d.node: {Slices: []resourceslice.Slice{slice}}}})
}

// fault waits or fails as the settings say.
func (d *driver) fault(ctx context.Context) error {
	for {
		s, err := d.read()
		if err != nil {
			return err
		}
		if s.Refuse != "" {
			return errors.New(s.Refuse)
		}
		if !s.Hang {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (d *driver) PrepareResourceClaims(ctx context.Context, claims []*resourceapi.ResourceClaim) (
	map[types.UID]kubeletplugin.PrepareResult, error) {
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		devices, err := d.prepare(ctx, claim)
		results[claim.UID] = kubeletplugin.PrepareResult{Err: err, Devices: devices}
		fmt.Printf("prepare %s/%s %s: %d devices, %v\n", claim.Namespace, claim.Name, claim.UID, len(devices), err)
	}
	return results, nil
}

func (d *driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (
	map[types.UID]error, error) {
	results := map[types.UID]error{}
	for _, claim := range claims {
		results[claim.UID] = d.unprepare(claim.UID)
		fmt.Printf("unprepare %s: %v\n", claim, results[claim.UID])
	}
	return results, nil
}

func (d *driver) HandleError(_ context.Context, err error, msg string) {
	fmt.Printf("%s: %v\n", msg, err)
}

func (d *driver) specPath(claim types.UID) string {
	return filepath.Join(cdiFolder, fmt.Sprintf("%s-%s.json", d.name, claim))
}

// prepare writes the CDI file that gives the claim's devices to its containers, each by an environment
// variable DEVICE_NAME=REQUEST and by its edits.
func (d *driver) prepare(ctx context.Context, claim *resourceapi.ResourceClaim) ([]kubeletplugin.Device, error) {
	if err := d.fault(ctx); err != nil {
		return nil, err
	}
	s, err := d.read()
	if err != nil {
		return nil, err
	}
	known := map[string]setDevice{}
	for _, each := range s.Devices {
		known[each.Device.Name] = each
	}
	prepared, specs := []kubeletplugin.Device{}, []any{}
	status := []resourceapi.AllocatedDeviceStatus{}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != d.name {
			continue
		}
		device, there := known[result.Device]
		if !there {
			return nil, fmt.Errorf("no device %q on node %s", result.Device, d.node)
		}
		id := fmt.Sprintf("%s-%s", claim.UID, result.Device)
		edits := map[string]any{}
		for key, value := range device.Edits {
			edits[key] = value
		}
		variable := "DEVICE_" + strings.ToUpper(strings.ReplaceAll(result.Device, "-", "_"))
		env, _ := edits["env"].([]any)
		edits["env"] = append(env, variable+"="+result.Request)
		if device.Netdev != nil {
			if err := device.Netdev.configure(claim, d.name, result.Request); err != nil {
				return nil, err
			}
			hook, err := device.Netdev.make(claim.UID, result.Device)
			if err != nil {
				return nil, err
			}
			edits["hooks"] = []any{hook}
			status = append(status, resourceapi.AllocatedDeviceStatus{Driver: d.name, Pool: result.Pool,
				Device: result.Device, NetworkData: &resourceapi.NetworkDeviceData{
					InterfaceName: device.Netdev.Name, IPs: []string{device.Netdev.Address}}})
		}
		specs = append(specs, map[string]any{"name": id, "containerEdits": edits})
		prepared = append(prepared, kubeletplugin.Device{Requests: []string{result.Request}, PoolName: result.Pool,
			DeviceName: result.Device, CDIDeviceIDs: []string{fmt.Sprintf("%s/device=%s", d.name, id)}})
	}
	spec := map[string]any{"cdiVersion": "0.6.0", "kind": d.name + "/device", "devices": specs}
	if err := writeJSON(d.specPath(claim.UID), spec); err != nil {
		return nil, err
	}
	if len(status) > 0 { // not applied: the server cannot apply beside a configuration in the allocation
		patch, _ := json.Marshal(map[string]any{"status": map[string]any{"devices": status}})
		_, err = d.client.ResourceV1().ResourceClaims(claim.Namespace).Patch(ctx, claim.Name, types.MergePatchType, patch,
			metav1.PatchOptions{}, "status")
	}
	return prepared, err
}

func (d *driver) unprepare(claim types.UID) error {
	path := d.specPath(claim)
	if err := removeNetdevs(path); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

// writeJSON replaces the file at once, as containerd may read it at any time.
func writeJSON(path string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	fresh := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp")
	if err := os.WriteFile(fresh, text, 0o644); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}

// ip runs ip(8).
func ip(words ...string) error {
	out, err := exec.Command("ip", words...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %s", strings.Join(words, " "), strings.TrimSpace(string(out)))
	}
	return nil
}
