#include "serve/metric_set.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace sluice::serve {
namespace {

std::size_t labels_of(const MetricRow& row) {
  if (row.labels.empty()) return 0;
  return 1 + static_cast<std::size_t>(std::count(row.labels.begin(), row.labels.end(), ' '));
}

}  // namespace

void MetricSet::add(std::string_view name, std::vector<std::string> labels, double value) {
  Series& series = series_of(name);
  SLUICE_CHECK(labels.size() == labels_of(*series.row), std::string(name));
  SLUICE_CHECK(series.row->kind != MetricKind::kHistogram, std::string(name));
  series.samples.push_back({std::move(labels), value, {}});
}

void MetricSet::add(std::string_view name, HistogramState histogram) {
  Series& series = series_of(name);
  SLUICE_CHECK(series.row->kind == MetricKind::kHistogram, std::string(name));
  series.samples.push_back({{}, 0, std::move(histogram)});
}

MetricSet::Series& MetricSet::series_of(std::string_view name) {
  for (Series& series : series_)
    if (series.row->name == name) return series;
  series_.push_back({&metric_row(name), {}});
  return series_.back();
}

}  // namespace sluice::serve
