// `sluice quantise`: makes a model directory with rounded experts, to measure the loss of rounding.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/json/json.h"
#include "base/setting.h"
#include "codec/slices/quantiser_variants.h"
#include "command.h"
#include "flags/common_flags.h"
#include "flags/model_argument.h"
#include "flags/output_path.h"
#include "flags/slice_bits_flag.h"
#include "flags/work_memory.h"
#include "model/pack_plan.h"
#include "report/progress.h"
#include "store/pack/rounded_copy.h"
#include "store/source/directory_checkpoint.h"
#include "store/source/store_checkpoint.h"
#include "streams/interrupt.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {
namespace quantise_command {

struct Options {
  CommonFlags common;
  std::string model, output, quantiser = "amat", slices = "8/4";
};

std::string quantiser_names() {
  std::string names;
  for (const codec::QuantiserVariant& variant : codec::quantiser_variants())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", variant.name);
  return names;
}

void quantise(const Options& options) {
  const codec::QuantiserVariant& variant = codec::find_quantiser_variant(options.quantiser);
  const codec::SliceBits bits = slice_bits_flag(options.slices);
  check_model_name(options.model);
  store::check_not_gguf(options.model);
  store::check_not_packed(options.model);
  check_new_directory(options.output);
  const auto checkpoint = store::open_directory(options.model);
  if (options.common.json || !options.common.quiet) check_output_device();
  const store::PackPlan plan = model::pack_plan(*checkpoint);
  store::RoundedCopyOptions copy;
  copy.threads = static_cast<unsigned>(options.common.threads);
  copy.memory = WorkMemory(options.common.memory, "quantise").in_progress();
  copy.interrupted = interrupted;
  {
    std::optional<Progress> progress;
    copy.on_progress = [&](const store::PackProgress& now) {
      if (!progress)
        progress.emplace("quantise", now.total,
                         progress_verbosity(options.common.quiet, options.common.json));
      progress->update(now.done);
    };
    store::write_rounded_copy(options.model, options.output, plan, variant, bits, copy);
  }
  if (options.common.json) {
    std::cout << Json{{"path", options.output},
                      {"quantiser", variant.name},
                      {"slices", options.slices},
                      {"experts", plan.experts.size()}}
                     .dump()
              << "\n";
  } else if (!options.common.quiet) {
    print_wrapped(fmt::format("{}: {} experts as {} of {} leaves them: {}", options.output,
                              plan.experts.size(), variant.name, options.slices, variant.what));
  }
}

}  // namespace quantise_command
}  // namespace

void add_quantise(Command& app) {
  using namespace quantise_command;
  Command* command = app.add_command(
      "quantise", "Copy a model directory with its experts rounded, to measure what that costs");
  auto options = std::make_shared<Options>();
  add_model_argument(*command, "MODEL", options->model, options->common,
                     "Hugging Face directory, or a name that sluice list shows");
  command->add_option(Setting::kOutput, &options->output, "The directory to make; must not exist")
      ->required();
  command
      ->add_option(Setting::kQuantiser, &options->quantiser,
                   "How weights are rounded (SliceMoE, table 1): " + quantiser_names())
      ->show_default();
  command
      ->add_option(Setting::kSlices, &options->slices,
                   "Bits of codes, and of the higher slice: 8/4, 6/3, 4/2")
      ->show_default();
  options->common.memory = "128MiB";
  add_common_flags(*command, options->common,
                   {.memory = "Memory to work with; at least 64MiB",
                    .threads = "Threads that round; 0: one for every CPU",
                    .json = "Print one JSON object at the end",
                    .quiet = "Print nothing but errors"});
  command->footer(
      "Weights keep their type, so that BF16 rounds once more. To fetch experts in slices, use pack "
      "--slices.\n"
      "Example:\n"
      "  sluice quantise DeepSeek-V2-Lite -o lite-amat --quantiser amat --slices 4/2");
  command->callback([options] { quantise(*options); });
}

}  // namespace sluice::app
