package kube

import "testing"

func (c *cluster) testHelm(t *testing.T) { _ = t }
