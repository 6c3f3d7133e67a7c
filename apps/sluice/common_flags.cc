#include "common_flags.h"

#include <limits>

#include "base/cpu.h"
#include "base/error.h"
#include "command_line.h"
#include "fetch/weight_files.h"
#include "number_range.h"

namespace sluice::app {
namespace {

constexpr std::uint64_t kMostThreads = 1024;
constexpr const char* kNoEffect = "Accepted for uniformity; has no effect here";

std::string text_or_no_effect(const std::string& text) { return text.empty() ? kNoEffect : text; }

}  // namespace

void add_common_flags(Command& command, CommonFlags& flags, const CommonHelp& help) {
  const std::string group = "Common flags";
  Flag* memory = command.add_option("--memory", &flags.memory, text_or_no_effect(help.memory));
  memory->check([](const std::string& text) { parse_size(text, "--memory"); })->type_name("SIZE");
  if (!flags.memory.empty()) memory->show_default();
  Flag* threads = command.add_option("-t,--threads", &flags.threads, text_or_no_effect(help.threads));
  threads->check(whole_number("--threads", 0, kMostThreads))->type_name("NUMBER");
  Flag* isa = command.add_option("--isa", &flags.isa, text_or_no_effect(help.isa));
  isa->check([](const std::string& text) { parse_isa(text); })->type_name("NAME");
  Flag* io = command.add_option("--io", &flags.io, text_or_no_effect(help.io));
  io->check([](const std::string& text) { fetch::parse_io_mode(text); })->type_name("MODE");
  Flag* seed = command.add_option("--seed", &flags.seed, text_or_no_effect(help.seed));
  seed->check(whole_number("--seed", 0, std::numeric_limits<std::uint64_t>::max()))->type_name("NUMBER");
  if (!help.threads.empty()) threads->show_default();
  if (!help.isa.empty()) isa->show_default();
  if (!help.io.empty()) io->show_default();
  Flag* json = command.add_flag("--json", flags.json, text_or_no_effect(help.json));
  Flag* quiet = command.add_flag("-q,--quiet", flags.quiet, text_or_no_effect(help.quiet));
  for (Flag* option : {memory, threads, isa, io, seed, json, quiet}) option->group(group);
}

}  // namespace sluice::app
