// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	resourceapi "k8s.io/api/resource/v1"
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
}

type setDevice struct {
	Device resourceapi.Device
	// Edits is what CDI calls containerEdits, with which a container gets the device.
	Edits map[string]any
}

type driver struct {
	name, node, path string
	client           *kubernetes.Clientset
}

// draDriver is a DRA driver whose devices are what a file says they are: it stands for drivers of others whose
// devices our node plugin does not make.
func draDriver() error {
	d := &driver{}
	flag.StringVar(&d.name, "driver", "", "the driver's name")
	flag.StringVar(&d.node, "node", "", "the node's name")
	flag.StringVar(&d.path, "settings", "", "the file of devices")
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
		kubeletplugin.KubeClient(d.client))
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

func (d *driver) PrepareResourceClaims(_ context.Context, claims []*resourceapi.ResourceClaim) (
	map[types.UID]kubeletplugin.PrepareResult, error) {
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		devices, err := d.prepare(claim)
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

// WatchHealthStatus has nothing to report: the devices of a file do not fail.
func (d *driver) WatchHealthStatus(context.Context, chan<- kubeletplugin.DeviceHealthReport) error {
	return kubeletplugin.ErrHealthNotSupported
}

func (d *driver) specPath(claim types.UID) string {
	return filepath.Join(cdiFolder, fmt.Sprintf("%s-%s.json", d.name, claim))
}

// prepare writes the CDI file that gives the claim's devices to its containers, each by its edits.
func (d *driver) prepare(claim *resourceapi.ResourceClaim) ([]kubeletplugin.Device, error) {
	s, err := d.read()
	if err != nil {
		return nil, err
	}
	known := map[string]setDevice{}
	for _, each := range s.Devices {
		known[each.Device.Name] = each
	}
	prepared, specs := []kubeletplugin.Device{}, []any{}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != d.name {
			continue
		}
		device, there := known[result.Device]
		if !there {
			return nil, fmt.Errorf("no device %q on node %s", result.Device, d.node)
		}
		id := fmt.Sprintf("%s-%s", claim.UID, result.Device)
		specs = append(specs, map[string]any{"name": id, "containerEdits": device.Edits})
		prepared = append(prepared, kubeletplugin.Device{Requests: []string{result.Request}, PoolName: result.Pool,
			DeviceName: result.Device, CDIDeviceIDs: []string{fmt.Sprintf("%s/device=%s", d.name, id)}})
	}
	spec := map[string]any{"cdiVersion": "0.6.0", "kind": d.name + "/device", "devices": specs}
	return prepared, writeJSON(d.specPath(claim.UID), spec)
}

func (d *driver) unprepare(claim types.UID) error {
	if err := os.Remove(d.specPath(claim)); err != nil && !os.IsNotExist(err) {
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
