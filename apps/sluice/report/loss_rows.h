// What a run computed otherwise than the exact model does, for people.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::engine {
struct RunReport;
}

namespace sluice::app {

struct ReportRow {
  std::string_view name;
  std::string text;
};
// What was computed otherwise than by the exact model, and how often; empty if nothing was.
std::vector<ReportRow> loss_rows(const engine::RunReport& run);

}  // namespace sluice::app
