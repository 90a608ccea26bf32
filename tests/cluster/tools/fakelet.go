// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"hash/crc32"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const (
	fakeNode = "test.drarun.dev/fake"  // label of a node that nobody runs
	endsIn   = "test.drarun.dev/ends"  // annotation of a pod: seconds until it succeeds
	stays    = "test.drarun.dev/stays" // annotation of a pod: it is bound, but its containers never start
	workers  = 16
)

type fakelet struct {
	client *kubernetes.Clientset
	pods   cache.Indexer
	queue  workqueue.TypedRateLimitingInterface[string]
}

// fakeKubelet plays the kubelet for pods on nodes with the label fakeNode: they run as soon as they are
// bound, and go as soon as they are deleted.
func fakeKubelet() error {
	client, err := connect()
	if err != nil {
		return err
	}
	ctx, cancel := untilSignal()
	defer cancel()
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().Pods().Informer()
	f := &fakelet{client, informer.GetIndexer(),
		workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())}
	add := func(object any) {
		if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
			f.queue.Add(key)
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(_, object any) { add(object) }}); err != nil {
		return err
	}
	nodes := factory.Core().V1().Nodes().Lister()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	is := func(name string) bool {
		node, err := nodes.Get(name)
		return err == nil && node.Labels[fakeNode] != ""
	}
	for range workers {
		go f.work(ctx, is)
	}
	<-ctx.Done()
	f.queue.ShutDown()
	return nil
}

func (f *fakelet) work(ctx context.Context, fake func(string) bool) {
	for {
		key, ended := f.queue.Get()
		if ended {
			return
		}
		object, there, _ := f.pods.GetByKey(key)
		if there && fake(object.(*v1.Pod).Spec.NodeName) {
			if err := f.treat(ctx, key, object.(*v1.Pod)); err != nil && !apierrors.IsNotFound(err) {
				f.queue.AddRateLimited(key)
			} else {
				f.queue.Forget(key)
			}
		}
		f.queue.Done(key)
	}
}

func (f *fakelet) treat(ctx context.Context, key string, pod *v1.Pod) error {
	pods := f.client.CoreV1().Pods(pod.Namespace)
	switch {
	case pod.DeletionTimestamp != nil:
		now := int64(0)
		return pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now,
			Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	case pod.Annotations[stays] != "":
	case pod.Status.Phase == v1.PodPending:
		_, err := pods.UpdateStatus(ctx, running(pod), metav1.UpdateOptions{})
		return err
	case pod.Status.Phase == v1.PodRunning && pod.Annotations[endsIn] != "":
		seconds, err := strconv.ParseFloat(pod.Annotations[endsIn], 64)
		if err != nil {
			return nil
		}
		left := time.Until(pod.Status.StartTime.Add(time.Duration(seconds * float64(time.Second))))
		if left > 0 {
			f.queue.AddAfter(key, left)
			return nil
		}
		_, err = pods.UpdateStatus(ctx, succeeded(pod), metav1.UpdateOptions{})
		return err
	}
	return nil
}

func running(pod *v1.Pod) *v1.Pod {
	pod = pod.DeepCopy()
	now, yes := metav1.Now(), true
	sum := crc32.ChecksumIEEE([]byte(pod.UID))
	pod.Status.Phase, pod.Status.StartTime, pod.Status.HostIP = v1.PodRunning, &now, "127.0.0.1"
	pod.Status.PodIP = fmt.Sprintf("10.%d.%d.%d", 128+sum>>17&63, sum>>8&255, 1+sum%254)
	pod.Status.PodIPs = []v1.PodIP{{IP: pod.Status.PodIP}}
	for _, kind := range []v1.PodConditionType{v1.PodInitialized, v1.PodReady, v1.ContainersReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{Type: kind, Status: v1.ConditionTrue,
			LastTransitionTime: now})
	}
	for _, each := range pod.Spec.InitContainers {
		pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, v1.ContainerStatus{
			Name: each.Name, Image: each.Image, Ready: true, State: ended(now, now)})
	}
	for _, each := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, v1.ContainerStatus{
			Name: each.Name, Image: each.Image, Ready: true, Started: &yes,
			State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: now}}})
	}
	return pod
}

func succeeded(pod *v1.Pod) *v1.Pod {
	pod = pod.DeepCopy()
	pod.Status.Phase = v1.PodSucceeded
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		status.Ready, status.State = false, ended(*pod.Status.StartTime, metav1.Now())
	}
	for i := range pod.Status.Conditions {
		if kind := pod.Status.Conditions[i].Type; kind == v1.PodReady || kind == v1.ContainersReady {
			pod.Status.Conditions[i].Status, pod.Status.Conditions[i].Reason = v1.ConditionFalse, "PodCompleted"
		}
	}
	return pod
}

func ended(from, to metav1.Time) v1.ContainerState {
	return v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Reason: "Completed", StartedAt: from,
		FinishedAt: to}}
}
