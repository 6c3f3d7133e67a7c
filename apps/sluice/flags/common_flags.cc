#include "flags/common_flags.h"

#include <limits>
#include <utility>

#include "base/error.h"
#include "base/machine/cpu.h"
#include "base/setting.h"
#include "fetch/weight_files.h"
#include "flags/command_line.h"
#include "flags/number_range.h"

namespace sluice::app {
namespace {

constexpr std::uint64_t kMostThreads = 1024;

}  // namespace

void add_common_flags(Command& command, CommonFlags& flags, const CommonHelp& help) {
  Flag* memory = command.add_option(Setting::kMemory, &flags.memory, help.memory);
  memory->check([](const std::string& text) { parse_size(text, Setting::kMemory); })->type_name("SIZE");
  if (!flags.memory.empty()) memory->show_default();
  Flag* threads = command.add_option(Setting::kThreads, &flags.threads, help.threads);
  threads->check(whole_number(Setting::kThreads, 0, kMostThreads))->type_name("NUMBER");
  Flag* isa = command.add_option(Setting::kIsa, &flags.isa, help.isa);
  isa->check([](const std::string& text) { parse_isa(text); })->type_name("NAME");
  Flag* io = command.add_option(Setting::kIo, &flags.io, help.io);
  io->check([](const std::string& text) { fetch::parse_io_mode(text); })->type_name("MODE");
  Flag* seed = command.add_option(Setting::kSeed, &flags.seed, help.seed);
  seed->check(whole_number(Setting::kSeed, 0, std::numeric_limits<std::uint64_t>::max()))
      ->type_name("NUMBER");
  Flag* json = command.add_flag(Setting::kJson, flags.json, help.json);
  Flag* quiet = command.add_flag(Setting::kQuiet, flags.quiet, help.quiet);
  for (Flag* flag : {threads, isa, io}) flag->show_default();
  const std::pair<Flag*, const std::string&> all[] = {
      {memory, help.memory}, {threads, help.threads}, {isa, help.isa},    {io, help.io},
      {seed, help.seed},     {json, help.json},       {quiet, help.quiet}};
  for (const auto& [flag, text] : all) {
    flag->group(kCommonFlags);
    if (text.empty()) flag->without_effect();
  }
}

}  // namespace sluice::app
