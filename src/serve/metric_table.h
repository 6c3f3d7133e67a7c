// The metrics that the server tells, each with its kind and meaning: the one place where their names stand.
#pragma once

#include <span>
#include <string_view>

namespace sluice::serve {

enum class MetricKind { kCounter, kGauge, kHistogram };

struct MetricRow {
  std::string_view name;  // without the prefix "sluice_"
  MetricKind kind = MetricKind::kGauge;
  std::string_view help;
  std::string_view labels = {};         // separated by blanks, in the order in which values give them
  std::span<const double> bounds = {};  // bounds of a histogram
};

std::span<const MetricRow> metric_rows();
// Trips SLUICE_CHECK for a name that is not in the table.
const MetricRow& metric_row(std::string_view name);

}  // namespace sluice::serve
