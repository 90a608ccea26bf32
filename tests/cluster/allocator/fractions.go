// SPDX-License-Identifier: Apache-2.0

//go:build !kubernetes_1_36

package allocator

func init() { features.FractionalCapacityRange = true }
