#include "commands/calibration_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/setting.h"
#include "eval/growing_windows.h"
#include "flags/engine_flags.h"
#include "model/architecture.h"
#include "model/config.h"
#include "report/progress.h"
#include "setup/open_tokenizer.h"
#include "setup/token_input.h"
#include "streams/interrupt.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
std::vector<tokenizer::TokenId> calibration_tokens(const CalibrationRequest& request, const OpenModel& open,
                                                   const EngineFlags& flags) {
  const std::string text = read_input_text(request.file);
  std::vector<tokenizer::TokenId> tokens =
      encode_file(*open.tokenizer, text, request.file, tokenizer::AddSpecial::kNo, flags);
  tokens.resize(std::min(tokens.size(), static_cast<std::size_t>(request.tokens)));
  return tokens;
}

eval::SteppedWindows calibration_windows(const CalibrationRequest& request, const OpenModel& open) {
  const eval::SteppedWindows windows = {static_cast<std::size_t>(request.window),
                                        static_cast<std::size_t>(request.prompt)};
  if (windows.window < windows.prompt + 2)
    throw Error(ErrorKind::kUsage, "a window leaves no token to score behind its prompt")
        .in(Setting::kCtx)
        .expected(fmt::format("at least {}", windows.prompt + 2))
        .found(std::to_string(windows.window));
  if (windows.window > open.model.config.max_positions)
    throw Error(ErrorKind::kUsage, "windows are longer than the model's context")
        .in(Setting::kCtx)
        .expected(fmt::format("at most {}", open.model.config.max_positions))
        .found(std::to_string(windows.window));
  return windows;
}

void calibrate_with_progress(const CalibrationRequest& request, const EngineFlags& flags,
                             const std::function<void(const OnCalibrated&)>& measure) {
  std::optional<Progress> progress;
  try {
    measure([&](std::size_t done, std::size_t all) {
      if (!progress)
        progress.emplace("calibrate: tokens", all, progress_verbosity(flags.quiet, flags.json),
                         Progress::Unit::kCount);
      progress->update(done);
      return !interrupted();
    });
  } catch (Error& error) {
    if (error.kind() != ErrorKind::kInterrupted) throw;
    if (request.state.empty()) throw error.fix("with " + Setting::kState + " FILE it could go on there");
    const bool kept = std::filesystem::exists(request.state);  // not before the first window is
    throw error.fix(kept ? "what is finished is in " + request.state + ": the same command goes on there"
                         : "nothing was finished, so that nothing is kept");
  }
}

void print_what_is_known(std::span<const eval::LossDifference> losses, std::uint64_t scored) {
  const auto known = std::ranges::count_if(losses, eval::is_known);
  double widest = 0;
  for (const eval::LossDifference& loss : losses)
    if (!eval::is_known(loss)) widest = std::max(widest, eval::of_perplexity(loss).error);
  print_output("\n");
  print_wrapped(fmt::format(
      "{} of {} losses are known to a tenth, or to 0.2 % of perplexity{}", known, losses.size(),
      widest > 0 ? fmt::format("; the widest error of the others is {:.2f} %: more text tells more, with a "
                               "larger {} or more {}",
                               100 * widest, flag(Setting::kTokens), flag(Setting::kHours))
                 : ""));
  if (scored >= eval::kFewScored) return;
  print_wrapped(
      fmt::format("few tokens: contracts may be missed by a fifth or more; give more text, and {} {} or more",
                  flag(Setting::kTokens), kCalibrationTokens));
}

}  // namespace sluice::app
