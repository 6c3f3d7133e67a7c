// `sluice unpack`: restores the source directory of a packed store.
#include "store/pack/unpack.h"

#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <string>

#include "base/json/json.h"
#include "base/machine/cpu.h"
#include "base/setting.h"
#include "command.h"
#include "flags/common_flags.h"
#include "flags/output_path.h"
#include "flags/work_memory.h"
#include "report/progress.h"
#include "streams/interrupt.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {
namespace unpack_command {

struct Options {
  CommonFlags common;
  std::string store, output;
};

void unpack(const Options& options) {
  store::UnpackOptions unpack;
  unpack.threads = static_cast<unsigned>(options.common.threads);
  unpack.isa = parse_isa(options.common.isa);
  const WorkMemory memory(options.common.memory, "unpack");
  unpack.memory = memory.in_progress();
  unpack.check_memory = [&](Bytes least) { memory.check(least); };
  unpack.interrupted = interrupted;
  check_new_directory(options.output);
  if (options.common.json || !options.common.quiet) check_output_device();
  store::UnpackResult result;
  {
    ProgressOfTotal progress("unpack", progress_verbosity(options.common.quiet, options.common.json));
    unpack.on_progress = [&](Bytes done, Bytes total) { progress.update(done, total); };
    result = store::unpack(options.store, options.output, unpack);
  }
  if (options.common.json) {
    std::cout << Json{{"path", options.output}, {"files", result.files}, {"bytes", result.bytes}}.dump()
              << "\n";
  } else if (!options.common.quiet) {
    print_wrapped(fmt::format("{}: {} files, {}, as they were packed", options.output, result.files,
                              format_bytes(result.bytes)));
  }
}

}  // namespace unpack_command
}  // namespace

void add_unpack(Command& app) {
  using namespace unpack_command;
  Command* command =
      app.add_command("unpack", "Restore every file that a store was packed from, byte for byte");
  auto options = std::make_shared<Options>();
  command->add_argument("STORE", &options->store, "Packed store, NAME.sluice")->required();
  command->add_option(Setting::kOutput, &options->output, "The directory to make; must not exist")
      ->required();
  options->common.memory = "1GiB";
  add_common_flags(*command, options->common,
                   {.memory = "Memory to work with; at least 64MiB",
                    .threads = "Threads that decode; 0: one for every CPU",
                    .isa = "Instruction set that merges words: auto, scalar, avx2, avx512, avx512_vbmi2, "
                           "avx512_bf16, amx, neon",
                    .json = "Print one JSON object at the end",
                    .quiet = "Print nothing but errors"});
  command->footer("Example:\n  sluice unpack qwen.sluice -o Qwen1.5-MoE-A2.7B");
  command->callback([options] { unpack(*options); });
}

}  // namespace sluice::app
