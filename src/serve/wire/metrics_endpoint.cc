#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "serve/json/json_writer.h"
#include "serve/wire/endpoints.h"
#include "serve/wire/process_metrics.h"

namespace sluice::serve {
namespace {

std::string escaped_label(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\n') {
      text += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') text += '\\';
    text += c;
  }
  return text;
}

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  if (value == std::floor(value) && std::abs(value) < 1e15)
    return std::to_string(static_cast<std::int64_t>(value));
  JsonWriter out;
  return out.real(value).take();
}

class MetricsText {
 public:
  explicit MetricsText(std::string_view model) : model_("model_name=\"" + escaped_label(model) + '"') {}

  void add(const MetricSet::Series& series) {
    const MetricRow& row = *series.row;
    const char* kind = row.kind == MetricKind::kCounter ? "counter"
                       : row.kind == MetricKind::kGauge ? "gauge"
                                                        : "histogram";
    text_ += fmt::format("# HELP sluice_{} {}\n# TYPE sluice_{} {}\n", row.name, row.help, row.name, kind);
    for (const MetricSet::Sample& sample : series.samples) {
      if (row.kind == MetricKind::kHistogram) {
        add_histogram(row, sample.histogram);
      } else {
        text_ +=
            fmt::format("sluice_{}{{{}}} {}\n", row.name, labels(row, sample), number_text(sample.value));
      }
    }
  }
  std::string take() { return std::move(text_); }

 private:
  std::string labels(const MetricRow& row, const MetricSet::Sample& sample) const {
    std::string text = model_;
    std::string_view names = row.labels;
    for (const std::string& value : sample.labels) {
      const std::string_view name = names.substr(0, names.find(' '));
      names.remove_prefix(std::min(names.size(), name.size() + 1));
      text += fmt::format(",{}=\"{}\"", name, escaped_label(value));
    }
    return text;
  }

  void add_histogram(const MetricRow& row, const HistogramState& state) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < state.buckets.size(); ++i) {
      count += state.buckets[i];
      const std::string bound = i < state.bounds.size() ? number_text(state.bounds[i]) : "+Inf";
      text_ += fmt::format("sluice_{}_bucket{{{},le=\"{}\"}} {}\n", row.name, model_, bound, count);
    }
    text_ += fmt::format("sluice_{}_sum{{{}}} {}\n", row.name, model_, number_text(state.sum));
    text_ += fmt::format("sluice_{}_count{{{}}} {}\n", row.name, model_, count);
  }

  const std::string model_;
  std::string text_;
};

}  // namespace

void answer_metrics(const Call& call) {
  MetricSet set;
  const Service& service = call.service;
  service.metrics.collect(set);
  if (service.http_counts) {
    const auto [connections, bytes] = service.http_counts();
    set.add("http_connections", static_cast<double>(connections));
    set.add("http_bytes_sent_total", static_cast<double>(bytes));
  }
  service.backend.collect(set);
  add_process_metrics(set);
  MetricsText text(service.backend.card().id);
  for (const MetricSet::Series& series : set.series()) text.add(series);
  http::Response response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = text.take();
  call.writer->send(std::move(response));
}

}  // namespace sluice::serve
