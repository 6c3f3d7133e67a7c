// `sluice verify`: checks every byte of a packed store against its checksums.
#include "store/check/verify.h"

#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/json/json.h"
#include "base/machine/cpu.h"
#include "base/setting.h"
#include "base/shown_text.h"
#include "command.h"
#include "flags/common_flags.h"
#include "flags/work_memory.h"
#include "report/progress.h"
#include "streams/exit_code.h"
#include "streams/interrupt.h"
#include "streams/standard_error.h"
#include "streams/standard_output.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {
namespace verify_command {

struct Options {
  CommonFlags common;
  std::string store;
  bool full = false;
};

// The verdict on a store with errors.
std::string_view verdict(const store::VerifyReport& report) {
  if (report.only(store::VerifyKind::kBeside))
    return "the packed data is sound, but files beside it are not; remove those files";
  if (report.only(store::VerifyKind::kUnread)) return "the store could not be read as a whole";
  if (report.only(store::VerifyKind::kUnsupported))
    return "the store cannot be read by this version of Sluice, or it is damaged; use the version that "
           "packed "
           "it, or else copy it again, or pack the model again";
  return "the store is damaged; copy it again, or pack the model again";
}

void verify(const Options& options) {
  store::VerifyOptions verify;
  verify.depth = options.full ? store::VerifyDepth::kFull : store::VerifyDepth::kStored;
  verify.threads = static_cast<unsigned>(options.common.threads);
  verify.isa = parse_isa(options.common.isa);
  const WorkMemory memory(options.common.memory, "verify");
  verify.memory = memory.in_progress();
  verify.check_memory = [&](Bytes least) { memory.check(least); };
  const bool prints = options.common.json || !options.common.quiet;
  if (prints) check_output();
  verify.interrupted = prints ? interrupted_or_unread : interrupted;
  store::VerifyReport report;
  {
    ProgressOfTotal progress("verify", progress_verbosity(options.common.quiet, options.common.json));
    verify.on_progress = [&](Bytes done, Bytes total) { progress.update(done, total); };
    report = store::verify(options.store, verify);
  }
  if (options.common.json) {
    Json errors = Json::array();
    for (const store::VerifyError& error : report.errors) {
      errors.push_back({{"file", error.file},
                        {"offset", error.offset},
                        {"message", error.message},
                        {"expected", error.expected},
                        {"found", error.found},
                        {"fix", error.fix}});
    }
    std::cout << Json{{"ok", report.ok()},
                      {"files", report.files},
                      {"bytes", report.bytes},
                      {"errors", errors}}
                     .dump(-1, ' ', false, Json::error_handler_t::replace)
              << "\n";
  } else {
    for (const store::VerifyError& error : report.errors) {
      const Error shown = Error(ErrorKind::kCorrupt, error.message)
                              .in(options.store + "/" + error.file, error.offset)
                              .expected(error.expected)
                              .found(error.found)
                              .fix(error.fix);
      print_message("sluice: {}", shown.what());
    }
    if (!report.ok()) print_message("sluice: {}: {}", shown_text(options.store), verdict(report));
    if (report.ok() && !options.common.quiet)
      print_wrapped(
          fmt::format("{}: {} files, {}: ok", options.store, report.files, format_bytes(report.bytes)));
  }
  if (!report.ok()) throw Exit{kExitFailed};
}

}  // namespace verify_command
}  // namespace

void add_verify(Command& app) {
  using namespace verify_command;
  Command* command = app.add_command("verify", "Check that no byte of a packed store has changed");
  auto options = std::make_shared<Options>();
  command->add_argument("STORE", &options->store, "Packed store, NAME.sluice")->required();
  command->add_flag(Setting::kFull, options->full,
                    "Also restore every source file in memory and compare its SHA-256");
  options->common.memory = "128MiB";
  add_common_flags(*command, options->common,
                   {.memory = "Memory to work with; at least 64MiB",
                    .threads = "Threads; 0: one for every CPU",
                    .isa = "Instruction set that decodes: auto, scalar, avx2, avx512, avx512_vbmi2, "
                           "avx512_bf16, amx, neon",
                    .json = "Print {\"ok\", \"files\", \"bytes\", \"errors\": [{file, offset, message, "
                            "expected, found, fix}]}",
                    .quiet = "Print nothing but errors"});
  command->footer("Exit code 0 if the store is sound, else 1.\nExample:\n  sluice verify qwen.sluice");
  command->callback([options] { verify(*options); });
}

}  // namespace sluice::app
