// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"

	health "k8s.io/kubelet/pkg/apis/dra-health/v1alpha1"
	dra "k8s.io/kubelet/pkg/apis/dra/v1"
	draBeta "k8s.io/kubelet/pkg/apis/dra/v1beta1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// kubeletCalls speaks to a DRA driver of played claims as the kubelet does, and as nobody should:
// kubelet-calls SOCKET. It prints a line a check, "ok NAME" or "FAIL NAME: what came".
func kubeletCalls() error {
	if len(os.Args) != 2 {
		return fmt.Errorf("usage: kubelet-calls SOCKET")
	}
	p := &player{socket: os.Args[1]}
	p.registers()
	p.prepares()
	p.largeOnes()
	p.wrongOnes()
	p.manyAtATime()
	p.slowOnes()
	p.cancelled()
	p.malformed()
	p.connections()
	p.healthStream()
	if p.failed > 0 {
		return fmt.Errorf("%d checks failed", p.failed)
	}
	return nil
}

type player struct {
	socket   string // of registration
	endpoint string // of the calls
	conn     *grpc.ClientConn
	client   dra.DRAPluginClient
	failed   int
}

func (p *player) check(ok bool, name string, got ...any) {
	if ok {
		fmt.Println("ok", name)
		return
	}
	p.failed++
	fmt.Println("FAIL "+name+":", fmt.Sprintln(got...))
}

func dialSocket(path string) *grpc.ClientConn {
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	return conn
}

func soon() context.Context {
	ctx, _ := context.WithTimeout(context.Background(), 20*time.Second) //nolint: the process ends
	return ctx
}

func claimsNamed(count int, format string) (claims []*dra.Claim) {
	for i := range count {
		name := format
		if strings.Contains(format, "%d") {
			name = fmt.Sprintf(format, i)
		}
		claims = append(claims, &dra.Claim{Namespace: "default", Name: name, Uid: fmt.Sprintf("uid-%d", i)})
	}
	return claims
}

func (p *player) prepare(ctx context.Context, claims ...*dra.Claim) (*dra.NodePrepareResourcesResponse, error) {
	return p.client.NodePrepareResources(ctx, &dra.NodePrepareResourcesRequest{Claims: claims})
}

// lives says whether an ordinary call is answered rightly.
func (p *player) lives() bool {
	r, err := p.prepare(soon(), claimsNamed(1, "c")...)
	return err == nil && len(r.Claims) == 1 && len(r.Claims["uid-0"].Devices) == 1
}

func (p *player) registers() {
	client := registration.NewRegistrationClient(dialSocket(p.socket))
	info, err := client.GetInfo(soon(), &registration.InfoRequest{})
	p.check(err == nil && info.Type == "DRAPlugin" && info.Name == "proto.example", "GetInfo", info, err)
	if err != nil {
		os.Exit(1)
	}
	p.check(slices.Index(info.SupportedVersions, "v1.DRAPlugin") == 0, "v1 first", info.SupportedVersions)
	_, err = client.NotifyRegistrationStatus(soon(), &registration.RegistrationStatus{PluginRegistered: true})
	p.check(err == nil, "NotifyRegistrationStatus", err)
	_, err = client.NotifyRegistrationStatus(soon(), &registration.RegistrationStatus{Error: "told to refuse"})
	p.check(err == nil, "NotifyRegistrationStatus with an error", err)
	p.endpoint = info.Endpoint
	p.conn = dialSocket(info.Endpoint)
	p.client = dra.NewDRAPluginClient(p.conn)
}

func (p *player) prepares() {
	r, err := p.prepare(soon(), claimsNamed(3, "c%d")...)
	device := r.GetClaims()["uid-1"].GetDevices()
	p.check(err == nil && len(r.Claims) == 3 && len(device) == 1 && device[0].ShareId == nil &&
		device[0].CdiDeviceIds[0] == "proto.example/gpu=1" && device[0].PoolName == "pool" &&
		device[0].RequestNames[0] == "gpu", "three claims", r, err)
	beta, err := draBeta.NewDRAPluginClient(p.conn).NodePrepareResources(soon(),
		&draBeta.NodePrepareResourcesRequest{Claims: []*draBeta.Claim{{Namespace: "a", Name: "b", Uid: "u"}}})
	p.check(err == nil && len(beta.Claims["u"].Devices) == 1, "v1beta1", beta, err)
	r, err = p.prepare(soon(), &dra.Claim{Name: "c", Uid: "1"}, &dra.Claim{Name: "fail-%é", Uid: "2"})
	p.check(err == nil && r.Claims["1"].Error == "" && r.Claims["2"].Error == "told to fail: fail-%é",
		"one of two claims fails", r, err)
	u, err := p.client.NodeUnprepareResources(soon(), &dra.NodeUnprepareResourcesRequest{Claims: claimsNamed(3, "c")})
	p.check(err == nil && len(u.Claims) == 3 && u.Claims["uid-0"] != nil, "unprepare", u, err)
	r, err = p.prepare(soon())
	p.check(err == nil && len(r.Claims) == 0, "no claim at all", r, err)
}

func (p *player) largeOnes() {
	r, err := p.prepare(soon(), claimsNamed(20000, "claim-with-a-name-long-enough-to-make-this-large-%d")...)
	p.check(err == nil && len(r.Claims) == 20000, "20000 claims", err)
	r, err = p.prepare(soon(), claimsNamed(1, "devices-40000")...)
	p.check(err == nil && len(r.Claims["uid-0"].Devices) == 40000, "40000 devices in an answer", err)
	_, err = p.prepare(soon(), claimsNamed(1, strings.Repeat("x", 5<<20))...)
	p.check(status.Code(err) == codes.ResourceExhausted, "5 MiB are refused", err)
	p.check(p.lives(), "works after the refusal")
}

func (p *player) wrongOnes() {
	const path = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/"
	var out dra.NodePrepareResourcesResponse
	err := p.conn.Invoke(soon(), path+"Nothing", &registration.InfoRequest{}, &out)
	p.check(status.Code(err) == codes.Unimplemented, "unknown method", err)
	err = p.conn.Invoke(soon(), path+"NodePrepareResources", &registration.PluginInfo{Type: "zzzzzzzzz"}, &out)
	p.check(status.Code(err) == codes.InvalidArgument, "another message", err)
	_, err = p.client.NodePrepareResources(soon(), &dra.NodePrepareResourcesRequest{Claims: claimsNamed(1, "c")},
		grpc.UseCompressor(gzip.Name))
	p.check(status.Code(err) == codes.Unimplemented, "compressed", err)
}

func (p *player) manyAtATime() {
	var group sync.WaitGroup
	var bad atomic.Int64
	for i := range 2000 {
		group.Go(func() {
			uid := fmt.Sprint(i)
			r, err := p.prepare(soon(), &dra.Claim{Name: "c", Uid: uid})
			if err != nil || r.Claims[uid] == nil {
				bad.Add(1)
			}
		})
	}
	group.Wait()
	p.check(bad.Load() == 0, "2000 calls at a time", bad.Load())
	begin := time.Now()
	for range 500 {
		p.lives()
	}
	fmt.Printf("note one call after the other: %v each\n", time.Since(begin)/500)
}

func (p *player) slowOnes() {
	done := make(chan time.Duration)
	begin := time.Now()
	go func() {
		_, err := p.prepare(soon(), claimsNamed(1, "sleep-1500")...)
		if err != nil {
			begin = time.Time{}
		}
		done <- time.Since(begin)
	}()
	time.Sleep(100 * time.Millisecond)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	_, err := registration.NewRegistrationClient(dialSocket(p.socket)).GetInfo(ctx, &registration.InfoRequest{})
	cancel()
	p.check(err == nil, "GetInfo while a claim is being prepared", err)
	p.check(p.lives(), "another claim meanwhile")
	took := <-done
	p.check(took > 1400*time.Millisecond && took < 20*time.Second, "the slow claim", took)
}

func (p *player) cancelled() {
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err := p.prepare(ctx, claimsNamed(1, "sleep-300")...)
	p.check(status.Code(err) == codes.Canceled, "cancelled", err)
	ctx, cancel = context.WithTimeout(context.Background(), 50*time.Millisecond)
	_, err = p.prepare(ctx, claimsNamed(1, "sleep-300")...)
	p.check(status.Code(err) == codes.DeadlineExceeded, "deadline", err)
	cancel()
	for i := range 300 { // rapid reset
		ctx, cancel := context.WithCancel(context.Background())
		go p.prepare(ctx, claimsNamed(1, "c")...)
		if i%3 == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}
	p.check(p.lives(), "works after cancellations")
	other := dialSocket(p.endpoint)
	go dra.NewDRAPluginClient(other).NodePrepareResources(soon(),
		&dra.NodePrepareResourcesRequest{Claims: claimsNamed(1, "sleep-300")})
	time.Sleep(100 * time.Millisecond)
	other.Close()
	p.check(p.lives(), "works after a client vanished")
}

func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	head := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	return append(binary.BigEndian.AppendUint32(head, stream), payload...)
}

// header is literal without indexing, RFC 7541 6.2.2.
func header(name, value string) []byte {
	return slices.Concat([]byte{0, byte(len(name))}, []byte(name), []byte{byte(len(value))}, []byte(value))
}

// raw sends bytes on a connection of their own and reads what comes until it ends or the time is over.
func (p *player) raw(bytes []byte, wait time.Duration) {
	conn, err := net.Dial("unix", p.endpoint)
	if err != nil {
		return
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(wait))
	conn.Write(bytes)
	io.Copy(io.Discard, conn)
}

func (p *player) malformed() {
	begin := slices.Concat([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(4, 0, 0, nil))
	good := slices.Concat(header(":method", "POST"), header(":scheme", "http"),
		header(":path", "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources"), header(":authority", "x"),
		header("content-type", "application/grpc"), header("te", "trailers"))
	message := func(body ...byte) []byte {
		return slices.Concat(begin, frame(1, 4, 1, good), frame(0, 1, 1, body))
	}
	cases := []struct {
		name  string
		bytes []byte
	}{
		{"garbage", []byte(strings.Repeat("\x00\xff garbage", 1000))},
		{"http/1.1", []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")},
		{"oversized frame", append(begin, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1)},
		{"data on stream 0", append(begin, frame(0, 0, 0, []byte("x"))...)},
		{"bad hpack", append(begin, frame(1, 5, 1, []byte{0xff, 0xff, 0xff, 0xff, 0xff})...)},
		{"headers, then nothing", append(begin, frame(1, 4, 1, good)...)},
		{"half a message", message(0, 0, 0, 0, 9, 1, 2)},
		{"length of 4 GiB", message(0, 0xff, 0xff, 0xff, 0xff, 1, 2)},
		{"no message", append(begin, frame(1, 5, 1, good)...)},
		{"two messages", message(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)},
		{"compressed flag", message(1, 0, 0, 0, 0)},
		{"window update overflow", append(begin, frame(8, 0, 0, []byte{0x7f, 0xff, 0xff, 0xff})...)},
		{"reset of an idle stream", append(begin, frame(3, 0, 9, []byte{0, 0, 0, 8})...)},
		{"continuation without header", append(begin, frame(9, 4, 1, []byte{0x82})...)},
		{"even stream", append(begin, frame(1, 5, 2, good)...)},
		{"truncated frame", append(begin, 0, 0, 9, 1)},
	}
	for _, each := range cases {
		p.raw(slices.Clone(each.bytes), 150*time.Millisecond)
		p.check(p.lives(), "works after "+each.name)
	}
	flood := slices.Concat(begin, frame(1, 0, 1, good))
	for range 5000 {
		flood = append(flood, frame(9, 0, 1, header("x-y", strings.Repeat("z", 100)))...)
	}
	p.raw(flood, 500*time.Millisecond)
	p.check(p.lives(), "works after a flood of continuations")
}

func (p *player) connections() {
	var idle []net.Conn
	for range 200 {
		if conn, err := net.Dial("unix", p.endpoint); err == nil {
			idle = append(idle, conn)
		}
	}
	p.check(p.lives(), "works beside 200 idle connections")
	for _, conn := range idle {
		conn.Close()
	}
	time.Sleep(100 * time.Millisecond)
	_, err := dra.NewDRAPluginClient(dialSocket(p.endpoint)).NodePrepareResources(soon(),
		&dra.NodePrepareResourcesRequest{Claims: claimsNamed(1, "c")})
	p.check(err == nil, "a new connection after them", err)
}

// healthStream expects a first message at once, and a second one when the driver is told (SIGUSR1 from
// who started us, when it reads our line).
func (p *player) healthStream() {
	stream, err := health.NewDRAResourceHealthClient(p.conn).NodeWatchResources(soon(), &health.NodeWatchResourcesRequest{})
	if err != nil {
		p.check(false, "health stream", err)
		return
	}
	first, err := stream.Recv()
	p.check(err == nil && len(first.Devices) == 2 && first.Devices[0].Health == health.HealthStatus_HEALTHY &&
		first.Devices[0].Device.DeviceName == "gpu-0" && time.Since(time.Unix(first.Devices[0].LastUpdatedTime, 0)) < time.Minute,
		"health at once", first, err)
	fmt.Println("note change it now")
	second, err := stream.Recv()
	p.check(err == nil && second.Devices[0].Health == health.HealthStatus_UNHEALTHY &&
		second.Devices[0].Message == "told to fail" && second.Devices[1].Health == health.HealthStatus_HEALTHY,
		"health when it changes", second, err)
}
