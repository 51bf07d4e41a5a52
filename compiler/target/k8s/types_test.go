package k8s_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/dynamograph/dynamo/graph/plan"
)

// set is what an archive's manifests declare, decoded strictly: a field that Kubernetes does not have fails.
type set struct {
	stateful []*appsv1.StatefulSet
	services map[string]*corev1.Service
	accounts map[string]*corev1.ServiceAccount
	configs  map[string]*corev1.ConfigMap
	policies []*networkingv1.NetworkPolicy
	budgets  []*policyv1.PodDisruptionBudget
	claims   map[string]*corev1.PersistentVolumeClaim
}

func decode(t *testing.T, files []txtar.File) *set {
	t.Helper()
	s := &set{services: map[string]*corev1.Service{}, accounts: map[string]*corev1.ServiceAccount{}, configs: map[string]*corev1.ConfigMap{},
		claims: map[string]*corev1.PersistentVolumeClaim{}}
	for _, f := range files {
		for i, doc := range strings.Split(string(f.Data), "---\n") {
			var kind struct {
				Kind     string `json:"kind"`
				Metadata struct {
					Name string `json:"name"`
				} `json:"metadata"`
			}
			if err := yaml.Unmarshal([]byte(doc), &kind); err != nil {
				t.Fatal(err)
			}
			where := fmt.Sprintf("%s document %d", f.Name, i+1)
			if e := validation.IsDNS1123Label(kind.Metadata.Name); len(e) > 0 {
				t.Errorf("%s: name %q: %v", where, kind.Metadata.Name, e)
			}
			into := func(v any) {
				if err := yaml.UnmarshalStrict([]byte(doc), v); err != nil {
					t.Errorf("%s: %v", where, err)
				}
			}
			switch kind.Kind {
			case "StatefulSet":
				v := &appsv1.StatefulSet{}
				into(v)
				s.stateful = append(s.stateful, v)
			case "Service":
				v := &corev1.Service{}
				into(v)
				if s.services[v.Name] != nil {
					t.Errorf("%s: a second Service %s", where, v.Name)
				}
				s.services[v.Name] = v
			case "ServiceAccount":
				v := &corev1.ServiceAccount{}
				into(v)
				s.accounts[v.Name] = v
			case "ConfigMap":
				v := &corev1.ConfigMap{}
				into(v)
				s.configs[v.Name] = v
			case "PersistentVolumeClaim":
				v := &corev1.PersistentVolumeClaim{}
				into(v)
				s.claims[v.Name] = v
			case "NetworkPolicy":
				v := &networkingv1.NetworkPolicy{}
				into(v)
				s.policies = append(s.policies, v)
			case "PodDisruptionBudget":
				v := &policyv1.PodDisruptionBudget{}
				into(v)
				s.budgets = append(s.budgets, v)
			default:
				t.Errorf("%s: unexpected kind %q", where, kind.Kind)
			}
		}
	}
	return s
}

// TestTypes holds the manifests against Kubernetes' own types and against each other.
func TestTypes(t *testing.T) {
	seen := 0
	for _, file := range archives(t) {
		a, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		manifests := slices.DeleteFunc(a.Files[1:], func(f txtar.File) bool { return f.Name == "findings" })
		if len(manifests) == 0 {
			continue
		}
		seen++
		t.Run(file, func(t *testing.T) {
			s := decode(t, manifests)
			o := optionsOf(t, a)
			if n := len(s.stateful); n == 0 || len(s.policies) != n || len(s.accounts) != n || len(s.budgets) != n || len(s.configs) != 1 {
				t.Fatalf("%d policies, %d stateful sets, %d accounts, %d config maps", len(s.policies), len(s.stateful), len(s.accounts), len(s.configs))
			}
			for _, a := range s.accounts {
				if a.AutomountServiceAccountToken == nil || *a.AutomountServiceAccountToken {
					t.Errorf("account %s mounts its token", a.Name)
				}
			}
			var p *plan.Plan
			for _, c := range s.configs {
				q, err := plan.Decode([]byte(c.Data["plan.json"]))
				if err != nil {
					t.Fatal(err)
				}
				if d, err := plan.Digest(q); err != nil || c.Annotations["dynamo.graph/plan"] != d {
					t.Errorf("digest is %s, annotated %s: %v", d, c.Annotations["dynamo.graph/plan"], err)
				}
				p = q
			}
			for _, e := range p.Edges {
				if e.Transport == "shm" {
					t.Errorf("edge %s -> %s: shared memory between pods", e.From, e.To)
				}
			}
			groups := map[string]*plan.Group{}
			for _, g := range p.Groups {
				groups[g.Name] = g
			}
			for _, st := range s.stateful {
				part := st.Labels["app.kubernetes.io/component"]
				if g := groups[part]; g != nil {
					delete(groups, part)
					if int(*st.Spec.Replicas) != g.Replicas.Want {
						t.Errorf("%s: %d replicas, the plan wants %d", st.Name, *st.Spec.Replicas, g.Replicas.Want)
					}
				}
				s.checkSet(t, st, o)
			}
			s.checkNetwork(t, p, o, listens(t, a))
			if len(groups) > 0 {
				t.Errorf("no stateful set for groups %v", slices.Collect(maps.Keys(groups)))
			}
			for _, b := range s.budgets {
				if !selects(b.Spec.Selector.MatchLabels, s.stateful) {
					t.Errorf("budget %s selects nothing", b.Name)
				}
			}
			for _, v := range s.services {
				if !selects(v.Spec.Selector, s.stateful) {
					t.Errorf("service %s selects nothing", v.Name)
				}
			}
		})
	}
	if seen < 3 {
		t.Errorf("only %d archives have manifests", seen)
	}
}

// selects reports whether labels match the pods of exactly one set.
func selects(labels map[string]string, sets []*appsv1.StatefulSet) bool {
	n := 0
	for _, s := range sets {
		if matches(labels, s.Spec.Template.Labels) {
			n++
		}
	}
	return n == 1
}

func matches(want, have map[string]string) bool {
	for k, v := range want {
		if have[k] != v {
			return false
		}
	}
	return len(want) > 0
}

func (s *set) checkSet(t *testing.T, st *appsv1.StatefulSet, o options) {
	t.Helper()
	pod := st.Spec.Template.Spec
	if !matches(st.Spec.Selector.MatchLabels, st.Spec.Template.Labels) {
		t.Errorf("%s: its selector does not select its pods", st.Name)
	}
	if v := s.services[st.Spec.ServiceName]; v == nil || v.Spec.ClusterIP != "None" {
		t.Errorf("%s: no headless service %q", st.Name, st.Spec.ServiceName)
	}
	if s.policyOf(t, st) == nil {
		return
	}
	if s.accounts[pod.ServiceAccountName] == nil || pod.ServiceAccountName != st.Name || pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
		t.Errorf("%s: account %q, token mounted", st.Name, pod.ServiceAccountName)
	}
	for _, v := range append(slices.Sorted(maps.Values(st.Spec.Template.Labels)), st.Name+"-0123456789") { // and the revision's label
		if e := validation.IsValidLabelValue(v); len(e) > 0 {
			t.Errorf("%s: label value %q: %v", st.Name, v, e)
		}
	}
	c := pod.Containers[0]
	// Pod Security Standards, level "restricted".
	ps, cs := pod.SecurityContext, c.SecurityContext
	if !*ps.RunAsNonRoot || *ps.RunAsUser == 0 || ps.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault || pod.HostNetwork || pod.HostPID ||
		*cs.AllowPrivilegeEscalation || !slices.Equal(cs.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(cs.Capabilities.Add) > 0 {
		t.Errorf("%s: not restricted: %+v %+v", st.Name, ps, cs)
	}
	volumes := map[string]bool{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
		switch {
		case v.ConfigMap != nil || v.EmptyDir != nil:
		case v.Secret != nil:
			if v.Secret.DefaultMode == nil || *v.Secret.DefaultMode != 0o440 || v.Name == "secrets" && len(v.Secret.Items) == 0 {
				t.Errorf("%s: volume %s gives more of a secret than is asked for: %+v", st.Name, v.Name, v.Secret)
			}
		case v.PersistentVolumeClaim != nil:
			c := v.PersistentVolumeClaim
			if (c.ClaimName != strings.TrimPrefix(o.Target.Models, "claim:") || !c.ReadOnly) && s.claims[c.ClaimName] == nil {
				t.Errorf("%s: volume %s: claim %q is neither made nor named", st.Name, v.Name, c.ClaimName)
			}
		default:
			t.Errorf("%s: volume %s is of a kind that is not expected", st.Name, v.Name)
		}
		if v.ConfigMap != nil && s.configs[v.ConfigMap.Name] == nil {
			t.Errorf("%s: no config map %q", st.Name, v.ConfigMap.Name)
		}
	}
	for _, v := range st.Spec.VolumeClaimTemplates {
		volumes[v.Name] = true
	}
	for _, v := range c.VolumeMounts {
		if !volumes[v.Name] {
			t.Errorf("%s: no volume %q", st.Name, v.Name)
		}
	}
	ports := map[string]bool{}
	for _, p := range c.Ports {
		ports[p.Name] = true
	}
	for _, p := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		switch {
		case p == nil:
			t.Errorf("%s: a probe is missing", st.Name)
		case p.HTTPGet != nil && !ports[p.HTTPGet.Port.StrVal], p.TCPSocket != nil && !ports[p.TCPSocket.Port.StrVal]:
			t.Errorf("%s: a probe asks a port that the container does not have", st.Name)
		}
	}
	if i := slices.Index(c.Args, "--drain"); i >= 0 {
		drain, err := strconv.Atoi(strings.TrimSuffix(c.Args[i+1], "s"))
		if err != nil || *pod.TerminationGracePeriodSeconds <= int64(drain) {
			t.Errorf("%s: grace of %d s for a drain of %s", st.Name, *pod.TerminationGracePeriodSeconds, c.Args[i+1])
		}
	}
	if i := slices.Index(c.Args, "--store"); i >= 0 {
		for _, e := range strings.Split(c.Args[i+1], ",") {
			host, _, _ := strings.Cut(e, ":")
			if s.services[host[strings.IndexByte(host, '.')+1:]] == nil && !strings.Contains(o.Target.Store, e) {
				t.Errorf("%s: no service for the store %q", st.Name, e)
			}
		}
	}
}
