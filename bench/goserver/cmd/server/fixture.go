package main

import (
	"context"
	"errors"
	"math"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/metrics/pkg/apis/custom_metrics"
	"k8s.io/metrics/pkg/apis/external_metrics"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"
)

const slowAnswer = 3 * time.Second

var (
	sampledAt   = metav1.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	externalAny = schema.GroupResource{Resource: "external"}
)

// externalFixture serves one metric with two series, and one metric for every way in which a source can answer or fail.
type externalFixture struct{}

func (externalFixture) ListAllExternalMetrics() []provider.ExternalMetricInfo {
	return []provider.ExternalMetricInfo{
		{Metric: "my-external-metric"}, {Metric: "other-external-metric"}, {Metric: "my-external-metric"},
	}
}

func (externalFixture) GetExternalMetric(
	_ context.Context, namespace string, selector labels.Selector, info provider.ExternalMetricInfo,
) (*external_metrics.ExternalMetricValueList, error) {
	if err := failureOf(info.Metric); err != nil {
		return nil, err
	}
	switch info.Metric {
	case "my-external-metric":
		return externalList(twoSeries(namespace, selector)...), nil
	case "nil-items":
		return &external_metrics.ExternalMetricValueList{}, nil
	case "nil-labels":
		value := external_metrics.ExternalMetricValue{MetricName: info.Metric, Value: milli(1500)}
		return externalList(value), nil
	case "quant":
		return externalList(quantities()...), nil
	case "slow":
		time.Sleep(slowAnswer)
	case "panic":
		panic("the source panicked")
	}
	return externalList(), nil
}

func externalList(values ...external_metrics.ExternalMetricValue) *external_metrics.ExternalMetricValueList {
	return &external_metrics.ExternalMetricValueList{Items: values}
}

func twoSeries(namespace string, selector labels.Selector) (matching []external_metrics.ExternalMetricValue) {
	minute := int64(60)
	for _, series := range []external_metrics.ExternalMetricValue{
		{MetricLabels: labels.Set{"foo": "bar", "ns": namespace}, Value: milli(42_000)},
		{MetricLabels: labels.Set{"foo": "baz", "ns": namespace}, Value: milli(43_000), WindowSeconds: &minute},
	} {
		series.MetricName, series.Timestamp = "my-external-metric", sampledAt
		if selector.Matches(labels.Set(series.MetricLabels)) {
			matching = append(matching, series)
		}
	}
	return matching
}

func failureOf(metric string) error {
	switch metric {
	case "e-notfound":
		return provider.NewMetricNotFoundError(externalAny, metric)
	case "e-plain":
		return errors.New("plain go error")
	case "e-badrequest":
		return apierrors.NewBadRequest("bad selector")
	case "e-internal":
		return apierrors.NewInternalError(errors.New("boom"))
	case "e-unavail":
		return apierrors.NewServiceUnavailable("not synced")
	case "e-forbidden":
		group := schema.GroupResource{Group: external_metrics.GroupName, Resource: metric}
		return apierrors.NewForbidden(group, "", errors.New("no"))
	case "e-timeout":
		return apierrors.NewTimeoutError("too slow", 0)
	case "e-timeout-retry":
		return apierrors.NewTimeoutError("too slow", 7)
	case "e-toomany":
		return apierrors.NewTooManyRequestsError("slow down")
	case "e-ctx":
		return context.DeadlineExceeded
	}
	return nil
}

func milli(value int64) resource.Quantity {
	return *resource.NewMilliQuantity(value, resource.DecimalSI)
}

func quantities() (values []external_metrics.ExternalMetricValue) {
	for _, value := range []int64{
		0, 1, 999, 1000, 1500, 20_000, 21_000, -1, -1500, 1_000_000, 1_234_567, 999_999_999, 1_000_000_000,
		1_000_000_000_000, math.MaxInt64, -math.MaxInt64,
	} {
		values = append(values, external_metrics.ExternalMetricValue{MetricName: "milli", Value: milli(value)})
	}
	for _, text := range []string{
		"0.5", "1.0001", "1e3", "12e6", "1Ki", "1500Mi", "100k", "0.0000000001", "12345678901234567890", "1.5Gi", "5n",
		"2500u", "3E", "1E",
	} {
		parsed := external_metrics.ExternalMetricValue{MetricName: "parse " + text, Value: resource.MustParse(text)}
		values = append(values, parsed)
	}
	for i := range values {
		values[i].Timestamp = sampledAt
	}
	return values
}

// customFixture answers 300m for every object and metric but the metric called missing; every object is a pod.
type customFixture struct{}

func (customFixture) ListAllMetrics() []provider.CustomMetricInfo {
	return []provider.CustomMetricInfo{
		{GroupResource: schema.GroupResource{Resource: "pods"}, Namespaced: true, Metric: "some-metric"},
		{GroupResource: schema.GroupResource{Resource: "namespaces"}, Metric: "some-metric"},
		{
			GroupResource: schema.GroupResource{Group: "networking.k8s.io", Resource: "ingresses"},
			Namespaced:    true,
			Metric:        "hits",
		},
	}
}

func (customFixture) GetMetricByName(
	_ context.Context, name types.NamespacedName, info provider.CustomMetricInfo, metricSelector labels.Selector,
) (*custom_metrics.MetricValue, error) {
	if info.Metric == "missing" {
		return nil, provider.NewMetricNotFoundForError(info.GroupResource, info.Metric, name.Name)
	}
	return customValue(name, info, metricSelector)
}

func (customFixture) GetMetricBySelector(
	_ context.Context, namespace string, _ labels.Selector, info provider.CustomMetricInfo,
	metricSelector labels.Selector,
) (*custom_metrics.MetricValueList, error) {
	if info.Metric == "missing" {
		return nil, provider.NewMetricNotFoundError(info.GroupResource, info.Metric)
	}
	list := &custom_metrics.MetricValueList{}
	for _, pod := range []string{"pod-a", "pod-b"} {
		value, err := customValue(types.NamespacedName{Namespace: namespace, Name: pod}, info, metricSelector)
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, *value)
	}
	return list, nil
}

func customValue(
	name types.NamespacedName, info provider.CustomMetricInfo, metricSelector labels.Selector,
) (*custom_metrics.MetricValue, error) {
	value := &custom_metrics.MetricValue{
		DescribedObject: custom_metrics.ObjectReference{
			APIVersion: "/v1", Kind: "Pod", Name: name.Name, Namespace: name.Namespace,
		},
		Metric:    custom_metrics.MetricIdentifier{Name: info.Metric},
		Timestamp: sampledAt,
		Value:     milli(300),
	}
	if metricSelector.Empty() {
		return value, nil
	}
	selector, err := metav1.ParseToLabelSelector(metricSelector.String())
	value.Metric.Selector = selector
	return value, err
}
