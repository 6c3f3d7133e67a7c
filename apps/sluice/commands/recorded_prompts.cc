#include "commands/recorded_prompts.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/setting.h"
#include "report/run_report.h"

namespace sluice::app {

void check_prefill(const std::optional<std::uint64_t>& prefill, const trace::TraceHeader& header,
                   const std::string& path) {
  if (!prefill || !lab::marks_prompts(header)) return;
  throw Error(ErrorKind::kUsage, "this flag has no effect here")
      .in(Setting::kPrefill)
      .expected("a trace that does not say which tokens are of prompts (.mrt)")
      .found(path + ", which says it")
      .fix("leave " + Setting::kPrefill + " out");
}

std::uint64_t count_prompts(const lab::RoutedSteps& steps) {
  std::uint64_t prompts = 0;
  for (const lab::RoutedStep& step : steps.steps)
    if (step.prompt)
      for (const lab::RoutedStretch& one : step.sequences) prompts += one.context == 0 ? 1 : 0;
  return prompts;
}

std::string prompts_text(const lab::RoutedSteps& steps) {
  const std::uint64_t prompts = count_prompts(steps);
  if (prompts == 0) return "no prompt";
  const std::string tokens = tokens_text(steps.prompt_tokens);
  return prompts == 1 ? "1 prompt of " + tokens : fmt::format("{} prompts of {} in all", prompts, tokens);
}

}  // namespace sluice::app
