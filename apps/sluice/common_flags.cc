#include "common_flags.h"

#include <limits>

#include "base/cpu.h"
#include "base/error.h"
#include "fetch/weight_files.h"
#include "number_range.h"

namespace sluice::app {
namespace {

constexpr std::uint64_t kMostThreads = 1024;
constexpr const char* kNoEffect = "Accepted for uniformity; has no effect here";

std::string text_or_no_effect(const std::string& text) { return text.empty() ? kNoEffect : text; }

// `check` throws Error(kUsage) for a bad value, which leaves the parser as it is and ends in main().
template <class Check>
CLI::Validator checked(Check check) {
  return CLI::Validator(
      [check](std::string& text) {
        check(text);
        return std::string();
      },
      "");
}

}  // namespace

void add_common_flags(CLI::App& command, CommonFlags& flags, const CommonHelp& help) {
  const std::string group = "Common flags";
  CLI::Option* memory = command.add_option("--memory", flags.memory, text_or_no_effect(help.memory));
  memory->check(checked([](const std::string& text) { parse_size(text, "--memory"); }))->type_name("SIZE");
  if (!flags.memory.empty()) memory->capture_default_str();
  CLI::Option* threads = command.add_option("-t,--threads", flags.threads, text_or_no_effect(help.threads));
  threads->check(whole_number("--threads", 0, kMostThreads))->type_name("NUMBER");
  CLI::Option* isa = command.add_option("--isa", flags.isa, text_or_no_effect(help.isa));
  isa->check(checked([](const std::string& text) { parse_isa(text); }))->type_name("NAME");
  CLI::Option* io = command.add_option("--io", flags.io, text_or_no_effect(help.io));
  io->check(checked([](const std::string& text) { fetch::parse_io_mode(text); }))->type_name("MODE");
  CLI::Option* seed = command.add_option("--seed", flags.seed, text_or_no_effect(help.seed));
  seed->check(whole_number("--seed", 0, std::numeric_limits<std::uint64_t>::max()))->type_name("NUMBER");
  if (!help.threads.empty()) threads->capture_default_str();
  if (!help.isa.empty()) isa->capture_default_str();
  if (!help.io.empty()) io->capture_default_str();
  CLI::Option* json = command.add_flag("--json", flags.json, text_or_no_effect(help.json));
  CLI::Option* quiet = command.add_flag("-q,--quiet", flags.quiet, text_or_no_effect(help.quiet));
  for (CLI::Option* option : {memory, threads, isa, io, seed, json, quiet}) option->group(group);
}

}  // namespace sluice::app
