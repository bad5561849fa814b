package objects

import (
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"tare/param"
	"tare/workload/objects"
	"tare/workload/objects/loadfile"
)

// Checked adds a check of the objects in a load's file to the check of the workload's parameters. It refuses a field that has another type in
// Kubernetes' API, and what the cluster lacks; nil: no cluster is known. Without this check, the API server would refuse the field in the middle
// of a study, and the load would wait until its timeout for what the cluster lacks.
func Checked(check func(param.Values) error, on *Cluster) func(param.Values) error {
	return func(v param.Values) error {
		if err := check(v); err != nil {
			return err
		}
		if err := on.runs(v.Str("class")); err != nil {
			return &param.ValueError{Param: "class", Err: err}
		}
		if v.Str(loadfile.Param) == "" {
			return nil
		}
		vars, err := objects.Vars(v.Str("vars"))
		if err != nil {
			return err //nolint:wrapcheck // check has read them
		}
		plan, err := loadfile.Parse(v.Str(loadfile.Param), vars)
		if err != nil {
			return err //nolint:wrapcheck // it says where
		}
		api, suits := types(), on.suits(v)
		return plan.Visit(func(r *loadfile.Request) error { //nolint:wrapcheck // it says where
			if err := r.Fits(api); err != nil {
				return err
			}
			return suits(r)
		})
	}
}

// types are the API's types of the kinds that a load creates.
func types() map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for _, o := range []any{
		corev1.Pod{}, corev1.ConfigMap{}, corev1.Secret{}, corev1.Service{}, corev1.ReplicationController{}, corev1.ResourceQuota{}, corev1.LimitRange{}, corev1.PersistentVolumeClaim{},
		appsv1.Deployment{}, appsv1.ReplicaSet{}, appsv1.StatefulSet{}, batchv1.Job{}, networkingv1.NetworkPolicy{}, networkingv1.Ingress{},
	} {
		t := reflect.TypeOf(o)
		out[t.Name()] = t
	}
	return out
}
