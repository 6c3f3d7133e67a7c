#include "commands/calibrate_residual.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <optional>

#include "base/error.h"
#include "base/files/file.h"
#include "base/hash.h"
#include "base/json/json.h"
#include "base/setting.h"
#include "base/text_table.h"
#include "eval/measure_residual.h"
#include "flags/engine_flags.h"
#include "flags/model_argument.h"
#include "flags/output_path.h"
#include "model/architecture.h"
#include "model/config.h"
#include "report/progress.h"
#include "setup/engine_options.h"
#include "setup/open_model.h"
#include "setup/open_tokenizer.h"
#include "setup/token_input.h"
#include "store/sidecar/sidecar.h"
#include "store/source/store_checkpoint.h"
#include "streams/interrupt.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {
namespace calibrate_residual_command {

using engine::GateResidual;
using engine::PredictionQuality;
using engine::WindowMean;

// Where the result goes; checked before the work begins.
void check_place(const EngineFlags& flags, const ResidualRequest& request) {
  check_model_name(flags.model);
  if (!request.output.empty()) return check_output_path(request.output);
  if (store::looks_like_store(flags.model)) return store::check_takes_sidecars(flags.model);
  throw Error(ErrorKind::kUsage, "only a packed store can keep its residual itself")
      .in(flags.model)
      .expected("a NAME.sluice store, or " + Setting::kOut + " FILE")
      .found("no packed store")
      .fix("add " + Setting::kOut + " FILE");
}

std::string percent(const WindowMean& value) {
  const std::string error = std::isfinite(value.error) ? fmt::format(" ± {:.1f}", 100 * value.error) : "";
  return fmt::format("{:.1f}{}", 100 * value.mean, error);
}

std::vector<std::string> row(const std::string& name, const PredictionQuality& quality) {
  return {name,
          fmt::format("{:.3f}", quality.cosine_raw.mean),
          fmt::format("{:.3f}", quality.cosine_residual.mean),
          percent(quality.raw),
          percent(quality.residual),
          percent(quality.stream),
          percent(quality.above_raw)};
}

void print_table(const GateResidual& residual) {
  std::vector<std::vector<std::string>> rows = {
      {"layer", "cosine raw", "residual", "raw %", "residual %", "stream %", "residual - raw"}};
  for (std::size_t layer = 0; layer < residual.layers.size(); ++layer)
    rows.push_back(row(fmt::format("{} to {}", layer, layer + 1), residual.layers[layer]));
  rows.push_back(row("all", residual.all));
  print_wrapped(fmt::format("the mean of {} tokens, tested on {} others in {} windows of {}",
                            residual.averaged, residual.tokens - residual.averaged, residual.windows,
                            residual.window));
  print_output("\n{}\n", text_table(rows, terminal_columns(STDOUT_FILENO, kAnyColumns)));
  print_wrapped(
      "cosine: of the predicted and the true input of the router. %: of the experts that a token chose, "
      "those predicted; ± standard error over windows.");
  print_wrapped(fmt::format("auto prefetches by {}: residual less stream {} %",
                            residual.better_than_stream() ? "dali-residual" : "stream",
                            percent(residual.all.above_stream)));
}

Json json_of(const GateResidual& residual) {
  Json layers = Json::array();
  for (const PredictionQuality& layer : residual.layers) layers.push_back(engine::to_json(layer));
  return {{"identity", hex64(residual.identity)},
          {"text_sha256", residual.text_sha256},
          {"tokens", residual.tokens},
          {"averaged", residual.averaged},
          {"window", residual.window},
          {"windows", residual.windows},
          {"auto_prefetch", residual.better_than_stream() ? "dali-residual" : "stream"},
          {"all", engine::to_json(residual.all)},
          {"layers", layers}};
}

}  // namespace calibrate_residual_command
}  // namespace

void calibrate_residual(const EngineFlags& flags, const ResidualRequest& request) {
  using namespace calibrate_residual_command;
  check_place(flags, request);
  const OpenModel open = open_model(flags.model, WithTokenizer::kRequired, flags);
  std::vector<tokenizer::TokenId> tokens = encode_file(*open.tokenizer, read_input_text(request.file),
                                                       request.file, tokenizer::AddSpecial::kNo, flags);
  tokens.resize(std::min(tokens.size(), static_cast<std::size_t>(request.tokens)));
  eval::ResidualOptions settings;
  settings.window = static_cast<std::size_t>(request.window);
  if (settings.window > open.model.config.max_positions)
    throw Error(ErrorKind::kUsage, "windows are longer than the model's context")
        .in(Setting::kCtx)
        .expected(fmt::format("at most {}", open.model.config.max_positions))
        .found(std::to_string(settings.window))
        .fix("give a smaller " + Setting::kCtx);
  check_output();
  settings.engine = engine_options(flags);
  settings.engine.residual = nullptr;  // it is measured anew
  if (open.checkpoint->slices()) settings.engine.precision = experts::PrecisionMode::kHigh;
  std::optional<Progress> progress;
  settings.on_progress = [&](std::size_t done, std::size_t all) {
    if (!progress)
      progress.emplace("calibrate: tokens", all, progress_verbosity(flags.quiet, flags.json),
                       Progress::Unit::kCount);
    progress->update(done);
    return !interrupted();
  };
  const GateResidual residual = eval::measure_residual(*open.checkpoint, open.model, tokens, settings);
  progress.reset();
  const engine::ResidualTables tables(residual);
  if (request.output.empty())
    store::write_tables(flags.model, engine::kResidualSidecar, engine::kResidualTables, tables.tables());
  else
    write_file_atomically(request.output, tables.file());
  if (flags.json)
    std::cout << json_of(residual).dump() << '\n';
  else
    print_table(residual);
}

}  // namespace sluice::app
