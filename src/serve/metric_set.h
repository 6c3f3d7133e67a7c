// Values of the metrics at one time, put together from those who count.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/histogram.h"
#include "serve/metric_table.h"

namespace sluice::serve {

class MetricSet {
 public:
  struct Sample {
    std::vector<std::string> labels;  // values, in the order of MetricRow::labels
    double value = 0;
    HistogramState histogram;  // for a histogram
  };
  struct Series {
    const MetricRow* row = nullptr;
    std::vector<Sample> samples;
  };

  // REQUIRES: `name` is in the table, with as many labels.
  void add(std::string_view name, double value) { add(name, {}, value); }
  void add(std::string_view name, std::vector<std::string> labels, double value);
  void add(std::string_view name, HistogramState histogram);

  const std::vector<Series>& series() const { return series_; }

 private:
  Series& series_of(std::string_view name);

  std::vector<Series> series_;  // in the order in which they came
};

}  // namespace sluice::serve
