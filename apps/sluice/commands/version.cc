// `sluice version`: shows this program, what it was built with, and what it can use here.
#include <fmt/format.h>
#include <lz4.h>
#include <nettle/version.h>
#include <unistd.h>
#include <utf8proc.h>
#include <xxhash.h>
#include <zstd.h>

#include <CLI/Version.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/json/json.h"
#include "base/machine/cpu.h"
#include "base/wrapped_text.h"
#include "command.h"
#include "device/gpu_info.h"
#include "flags/common_flags.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {
namespace version_command {

std::string compiler() {
#if defined(__clang__)
  return "Clang " __clang_version__;
#else
  return "GCC " __VERSION__;
#endif
}

std::string pcre2_version() {
  char text[64] = {};
  pcre2_config(PCRE2_CONFIG_VERSION, text);  // "10.42 2022-12-11"
  const std::string_view version = text;
  return std::string(version.substr(0, version.find(' ')));
}

// Shared libraries report the running version; header-only ones the compiled version.
std::vector<std::pair<std::string, std::string>> libraries() {
  const unsigned xxh = XXH_versionNumber();
  return {
      {"CLI11", CLI11_VERSION},
      {"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
      {"liburing", SLUICE_LIBURING_VERSION},
      {"lz4", LZ4_versionString()},
      {"nettle", fmt::format("{}.{}", nettle_version_major(), nettle_version_minor())},
      {"nlohmann-json", json_library_version()},
      {"PCRE2", pcre2_version()},
      {"utf8proc", utf8proc_version()},
      {"xxhash", fmt::format("{}.{}.{}", xxh / 10000, xxh / 100 % 100, xxh % 100)},
      {"zstd", ZSTD_versionString()},
  };
}

Json version_json() {
  Json json = {{"version", SLUICE_VERSION}, {"compiler", compiler()}, {"gpu_runtime", device::gpu_runtime()}};
  for (const auto& [name, version] : libraries()) json["libraries"][name] = version;
  const CpuInfo cpu = cpu_info();
  json["cpu"] = {{"model", cpu.model}, {"features", cpu.features}};
  json["isa"] = {{"available", Json::array()}, {"chosen", isa_name(best_isa())}};
  for (const Isa isa : available_isas()) json["isa"]["available"].push_back(isa_name(isa));
  json["gpus"] = Json::array();
  for (const device::GpuInfo& gpu : device::list_gpus()) {
    json["gpus"].push_back(
        {{"name", gpu.name},
         {"memory", gpu.memory},
         {"free", gpu.free ? Json(*gpu.free) : Json()},
         {"compute_capability", fmt::format("{}.{}", gpu.compute_major, gpu.compute_minor)}});
  }
  json["gpu_lack"] = device::gpu_lack_text(device::gpu_lack());
  return json;
}

void print_version(const Json& json) {
  std::string libraries;
  for (const auto& [name, version] : json["libraries"].items()) {
    libraries += fmt::format("{}{} {}", libraries.empty() ? "" : ", ", name, version.get<std::string>());
  }
  std::string isas;
  for (const Json& isa : json["isa"]["available"]) isas += isa.get<std::string>() + " ";
  std::string gpus;
  for (const Json& gpu : json["gpus"])
    gpus += fmt::format("{}{} ({}{}, compute {})", gpus.empty() ? "" : ", ", gpu["name"].get<std::string>(),
                        format_bytes(gpu["memory"].get<Bytes>()),
                        gpu["free"].is_null() ? "" : ", " + format_bytes(gpu["free"].get<Bytes>()) + " free",
                        gpu["compute_capability"].get<std::string>());
  const auto lack = json["gpu_lack"].get<std::string>(), runtime = json["gpu_runtime"].get<std::string>();
  if (gpus.empty()) gpus = lack == runtime || lack.empty() ? "none" : "none, since there is " + lack;
  const std::size_t columns = terminal_columns(STDOUT_FILENO);
  const auto row = [&](std::string_view name, const std::string& text) {
    std::cout << report_row(name, text, columns);
  };
  std::cout << "sluice " << json["version"].get<std::string>() << '\n';
  row("compiler", json["compiler"].get<std::string>());
  row("libraries", libraries);
  row("CPU", json["cpu"]["model"].get<std::string>());
  row("instruction sets", fmt::format("{}(chosen: {})", isas, json["isa"]["chosen"].get<std::string>()));
  row("GPUs", fmt::format("{} ({})", gpus, runtime));
}

}  // namespace version_command
}  // namespace

void add_version(Command& app) {
  using namespace version_command;
  Command* command =
      app.add_command("version", "Show versions of the program and its libraries, and what it can use here");
  auto common = std::make_shared<CommonFlags>();
  add_common_flags(*command, *common, {.json = "Print one JSON object"});
  command->footer("Example:\n  sluice version --json");
  command->callback([common] {
    const Json json = version_json();
    if (common->json) {
      std::cout << json.dump(2) << '\n';
    } else {
      print_version(json);
    }
  });
}

}  // namespace sluice::app
