#include "commands/calibrate_smoe.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include "base/setting.h"
#include "base/text_table.h"
#include "eval/measure_smoe.h"
#include "flags/engine_flags.h"
#include "store/sidecar/sidecar.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {
namespace calibrate_smoe_command {

std::string smoe_points_table(const engine::SmoeCalibration& calibration, std::size_t columns) {
  const auto percent = [](double share) { return fmt::format("{:.3f} %", 100 * share); };
  std::vector<std::vector<std::string>> rows = {
      {"alpha, in memory", "scores lost", "perplexity", "loss", "± error", "bytes a token"}};
  for (const engine::SmoePoint& point : calibration.points) {
    const eval::PerplexityLoss loss = eval::of_perplexity({point.loss, point.error});
    rows.push_back({fmt::format("{:.2f}, {:.0f} %", point.alpha, 100 * point.cache), percent(point.amount),
                    fmt::format("{:.4f}", point.perplexity), percent(loss.share), percent(loss.error),
                    format_bytes(static_cast<Bytes>(point.bytes_per_token))});
  }
  return text_table(rows, columns);
}

void print_smoe_table(const engine::SmoeCalibration& calibration) {
  print_wrapped(
      fmt::format("{} tokens scored in {} windows; with its own experts the model has perplexity {:.4f}",
                  calibration.text.scored, calibration.text.windows, calibration.perplexity));
  print_output("\n{}\n", smoe_points_table(calibration, terminal_columns(STDOUT_FILENO, kAnyColumns)));
  print_wrapped(
      fmt::format("{} smoe will run with alpha {:.4g}: with it and one standard error, at most {:.0f} "
                  "% of perplexity were lost",
                  flag(Setting::kRouter), calibration.largest_alpha(std::log1p(engine::kUsualSmoeLoss)),
                  100 * engine::kUsualSmoeLoss));
  std::vector<eval::LossDifference> losses;
  for (const engine::SmoePoint& point : calibration.points)
    if (point.alpha > 0) losses.push_back({point.loss, point.error});
  print_what_is_known(losses, calibration.text.scored);
}

}  // namespace calibrate_smoe_command
}  // namespace

void calibrate_smoe(const EngineFlags& flags, const CalibrationRequest& request) {
  using namespace calibrate_smoe_command;
  const OpenModel open = open_model(flags.model, WithTokenizer::kRequired, flags);
  const std::vector<tokenizer::TokenId> tokens = calibration_tokens(request, open, flags);
  auto settings = calibration_settings<eval::MeasureSmoeOptions>(request, open, flags);
  engine::SmoeCalibration calibration;
  calibrate_with_progress(request, flags, [&](const OnCalibrated& on_progress) {
    settings.on_progress = on_progress;
    calibration = eval::measure_smoe(*open.checkpoint, open.model, tokens, settings);
  });
  const Json json = engine::to_json(calibration);
  store::write_sidecar(flags.model, "calibration", engine::kSmoeCalibrationKind, json);
  if (flags.json)
    std::cout << json.dump() << '\n';
  else
    print_smoe_table(calibration);
}

}  // namespace sluice::app
