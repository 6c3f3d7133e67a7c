// `sluice doctor`: says what on this machine helps or hinders, and what to do about it.
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/disk.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "base/machine/cpu.h"
#include "base/machine/system_memory.h"
#include "base/machine/thread_pool.h"
#include "base/rate.h"
#include "base/setting.h"
#include "base/shown_text.h"
#include "base/wrapped_text.h"
#include "command.h"
#include "device/choice/make_device.h"
#include "device/cuda/cuda_facts.h"
#include "device/gpu_info.h"
#include "engine/device_check.h"
#include "engine/plan/memory_plan.h"
#include "engine/plan/profile.h"
#include "flags/common_flags.h"
#include "report/device_costs.h"
#include "report/start_warnings.h"
#include "streams/terminal_columns.h"

namespace sluice::app {
namespace {
namespace doctor_command {

struct Finding {
  std::string name;
  bool ok = true;
  std::string text;
  std::string fix;  // for a warning: what the user can do
};

// ---- Checks

Finding check_cpu() {
  std::string isas;
  for (const Isa isa : available_isas()) isas += fmt::format("{}{}", isas.empty() ? "" : ", ", isa_name(isa));
  Finding finding{
      "cpu", true,
      fmt::format("{}; {} usable CPUs; instruction sets: {}", cpu_info().model, usable_cpus(), isas), ""};
  if (best_isa() == Isa::kScalar) {
    finding.ok = false;
    finding.fix =
        "neither AVX2 nor NEON is usable, so computing is slow; in a virtual machine, pass the host's CPU "
        "features on";
  }
  return finding;
}

Finding check_memory(const MemoryLimits& limits) {
  std::string text = fmt::format("{} installed, {} available", format_bytes(limits.machine_total),
                                 format_bytes(limits.machine_available));
  text += limits.cgroup_limit
              ? fmt::format("; the control group allows {} and holds {}", format_bytes(*limits.cgroup_limit),
                            format_bytes(limits.cgroup_used))
              : "; no control group limit";
  return {"memory", true, text, ""};
}

Finding check_budget() {
  const Bytes budget = engine::default_budget();
  Finding finding{
      "budget", true,
      fmt::format("{} is used when {} is not given", format_bytes(budget), flag(Setting::kMemory)), ""};
  if (budget < kGiB) {
    finding.ok = false;
    finding.fix = "little memory is free; close other programs, raise the control group's limit, or give " +
                  flag(Setting::kMemory);
  }
  return finding;
}

Finding check_swap(const MemoryLimits& limits) {
  if (limits.swap_total == 0) return {"swap", true, "off", ""};
  return {"swap", false, fmt::format("{} of swap is on", format_bytes(limits.swap_total)),
          "weights that the system swaps out are read back one page at a time; `swapoff -a`, or "
          "MemorySwapMax=0 in a "
          "systemd unit, keeps speed steady"};
}

// A file for trying reads: a new one, or, where nothing may be written, any existing file.
class ProbeFile {
 public:
  explicit ProbeFile(const std::string& directory) {
    std::string name = directory + "/.sluice-doctor-XXXXXX";
    const int fd = ::mkstemp(name.data());
    if (fd >= 0) {
      path_ = name;
      made_ = true;
      const std::string block(kBlockBytes, 's');
      const bool written =
          ::write(fd, block.data(), block.size()) == static_cast<ssize_t>(block.size()) && ::fsync(fd) == 0;
      error_ = errno;
      ::close(fd);
      if (written) return;
      ::unlink(path_.c_str());
      path_.clear();
      made_ = false;
    } else {
      error_ = errno;
    }
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
      if (!entry.is_regular_file(ignored) || entry.file_size(ignored) < kBlockBytes) continue;
      path_ = entry.path();
      return;
    }
  }
  ProbeFile(const ProbeFile&) = delete;
  ProbeFile& operator=(const ProbeFile&) = delete;
  ~ProbeFile() {
    if (made_) ::unlink(path_.c_str());
  }
  const std::string& path() const { return path_; }  // empty: no file could be made or found
  int error() const { return error_; }               // then: why none could be made

 private:
  std::string path_;
  int error_ = 0;
  bool made_ = false;
};

// Reads the first block of `file`; throws what the reader or the read fails with.
void read_one_block(DiskReader& reader, const InputFile& file) {
  const std::unique_ptr<std::byte, decltype(&std::free)> block(
      static_cast<std::byte*>(std::aligned_alloc(kBlockBytes, kBlockBytes)), &std::free);
  if (block == nullptr) throw std::bad_alloc();
  reader.submit({&file, 0, kBlockBytes, block.get(), 0});
  std::vector<DiskCompletion> done;
  reader.wait(1, done);
  if (done.at(0).error != 0) throw io_error("read", file.path(), done.at(0).error);
}

Finding check_direct_reads(const std::string& directory, const ProbeFile& probe,
                           std::optional<Bytes>& alignment) {
  const std::string fix =
      "put the model on a local disk (ext4, XFS, Btrfs), or run with " + flag(Setting::kIo) + " buffered";
  if (probe.path().empty()) {
    const bool full = probe.error() == ENOSPC || probe.error() == EDQUOT;
    return {
        "direct reads", false,
        fmt::format("{}: not checked: no file can be made there ({}), and it holds none that could be read",
                    escaped_text(directory), std::strerror(probe.error())),
        full ? "free some space, or name a directory that holds a model: sluice doctor DIRECTORY"
             : "name a directory that holds a model, or where you may write: sluice doctor DIRECTORY"};
  }
  try {
    const InputFile file = InputFile::open(probe.path(), ReadMode::kDirect);
    DiskOptions options;
    options.method = DiskMethod::kPread;
    const std::unique_ptr<DiskReader> reader = make_disk_reader(options);
    read_one_block(*reader, file);
    alignment = file.alignment();
    return {
        "direct reads", true,
        fmt::format("O_DIRECT works in {}, aligned to {} bytes", escaped_text(directory), file.alignment()),
        ""};
  } catch (const Error& error) {
    return {"direct reads", false, error.what(), fix};
  }
}

Finding check_io_uring(const ProbeFile& probe) {
  try {
    DiskOptions options;
    options.method = DiskMethod::kIoUring;
    const std::unique_ptr<DiskReader> reader = make_disk_reader(options);
    if (!probe.path().empty()) read_one_block(*reader, InputFile::open(probe.path()));
    return {"io_uring", true, "works", ""};
  } catch (const Error& error) {
    return {"io_uring", false, error.what(),
            "reads go through a pool of threads instead; to allow it, set the sysctl "
            "kernel.io_uring_disabled to 0, or "
            "permit io_uring in the container's seccomp profile"};
  }
}

// A GPU, and what was found by using it.
struct FoundGpu {
  device::GpuInfo info;
  std::optional<Bytes> free;
  std::optional<device::CudaLinkRates> link;
  std::optional<kernels::UnitCheck> check;  // covers all that there are kernels for
  std::string failure;                      // it could not be used
};

std::vector<FoundGpu> find_gpus() {
  std::vector<FoundGpu> gpus;
  for (const device::GpuInfo& info : device::list_gpus()) {
    const int index = static_cast<int>(gpus.size());
    FoundGpu& gpu = gpus.emplace_back(FoundGpu{info, info.free, {}, {}, ""});
    try {
      gpu.free = device::cuda_facts({.index = index}).free;
      gpu.link = device::measure_cuda_link(index);
      gpu.check = engine::check_device(device::CudaSpec{static_cast<unsigned>(index)}, {}, {},
                                       engine::all_gpu_work());
    } catch (const Error& error) {
      gpu.failure = error.what();
    }
  }
  return gpus;
}

// "all 61 operations have the host's bits".
std::string check_text(const kernels::UnitCheck& check) {
  if (check.good()) return fmt::format("all {} operations have the host's bits", check.tried);
  std::string text = fmt::format("{} of {} operations must not be used: ", check.faults.size(), check.tried);
  for (const kernels::UnitFault& fault : check.faults)
    text +=
        fmt::format("{}{} ({})", &fault == &check.faults.front() ? "" : ", ", fault.operation, fault.found);
  return text;
}

std::vector<Finding> check_gpus(const std::vector<FoundGpu>& gpus) {
  if (gpus.empty()) {
    const std::string lack(device::gpu_lack_text(device::gpu_lack())), runtime = device::gpu_runtime();
    return {
        {"gpu", true, lack == runtime ? "none: " + lack : fmt::format("none: {} ({})", lack, runtime), ""}};
  }
  std::vector<Finding> findings;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const FoundGpu& gpu = gpus[i];
    const bool good = gpu.failure.empty() && (!gpu.check || gpu.check->good());
    Finding finding{i == 0 ? "gpu" : fmt::format("gpu {}", i), good, "", ""};
    finding.text = fmt::format(
        "{}, {}{}", device::hardware_text(gpu.info.name, gpu.info.compute_major, gpu.info.compute_minor),
        gpu.free ? format_bytes(*gpu.free) + " free of " : "", format_bytes(gpu.info.memory));
    if (gpu.link)
      finding.text += fmt::format("; link {} there and {} back, of page-locked memory",
                                  format_rate(gpu.link->to_device), format_rate(gpu.link->from_device));
    finding.text += fmt::format(" ({})", device::gpu_runtime());
    if (gpu.check) finding.text += "; " + check_text(*gpu.check);
    if (gpu.check && !gpu.check->good())
      finding.fix = "update the driver; runs leave these operations to the host";
    if (!gpu.failure.empty()) {
      finding.text += "; " + gpu.failure;
      finding.fix = "see whether nvidia-smi shows it, and end what else uses it";
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

Json gpus_json(const std::vector<FoundGpu>& gpus) {
  Json list = Json::array();
  for (const FoundGpu& gpu : gpus)
    list.push_back(
        {{"name", gpu.info.name},
         {"compute_capability", fmt::format("{}.{}", gpu.info.compute_major, gpu.info.compute_minor)},
         {"memory", gpu.info.memory},
         {"free", gpu.free ? Json(*gpu.free) : Json()},
         {"link", gpu.link ? Json{{"to_device_bytes_per_s", gpu.link->to_device},
                                  {"from_device_bytes_per_s", gpu.link->from_device}}
                           : Json()},
         {"check", gpu.check ? Json{{"operations", gpu.check->tried},
                                    {"faults", device_faults_json(gpu.check->faults)}}
                             : Json()}});
  return list;
}

// The device that a profile was measured with.
Finding check_device(const std::string& path) {
  const engine::Profile profile = engine::read_profile(path);
  if (!profile.device)
    return {"device", false, path + " has no costs of a device",
            "measure one: sluice profile MODEL " + flag(Setting::kDevice) + " emulated " +
                flag(Setting::kOutput) + " FILE.json"};
  std::string text;
  for (const ReportRow& row : device_cost_rows(*profile.device))
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", row.name, row.text);
  const auto& [tokens, here] = profile.device->host.back();
  const double copy = profile.device->busy.seconds(profile.device->expert);
  if (copy < here.median) return {"device", true, text, ""};
  return {"device", false, text,
          fmt::format("a copy takes longer than computing the expert here for {} tokens: only experts that "
                      "stay on the device help",
                      tokens)};
}

// ---- Report

void print_json(const std::vector<Finding>& findings, const MemoryLimits& limits,
                const std::optional<Bytes>& alignment, const std::vector<FoundGpu>& gpus) {
  Json json = {{"default_budget", engine::default_budget()},
               {"memory",
                {{"total", limits.machine_total},
                 {"available", limits.machine_available},
                 {"swap", limits.swap_total}}},
               {"cpus", usable_cpus()},
               {"isa", isa_name(best_isa())}};
  json["memory"]["cgroup_limit"] = limits.cgroup_limit ? Json(*limits.cgroup_limit) : Json();
  json["direct_alignment"] = alignment ? Json(*alignment) : Json();
  json["gpus"] = gpus_json(gpus);
  json["checks"] = Json::array();
  for (const Finding& finding : findings) {
    json["checks"].push_back(
        {{"name", finding.name}, {"ok", finding.ok}, {"text", finding.text}, {"fix", finding.fix}});
  }
  std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

void print_lines(const std::vector<Finding>& findings, bool quiet) {
  const std::size_t columns = terminal_columns(STDOUT_FILENO);
  std::string lines;
  for (const Finding& finding : findings) {
    if (quiet && finding.ok) continue;
    lines +=
        report_row(fmt::format("{:<4} {}", finding.ok ? "ok" : "warn", finding.name), finding.text, columns);
    if (!finding.fix.empty()) lines += report_row("", finding.fix, columns);
  }
  std::cout << lines;
}

void doctor(const std::string& directory, const std::string& profile, const CommonFlags& common) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(directory, error);
  if (status.type() == std::filesystem::file_type::none) throw io_error("stat", directory, error.value());
  if (!std::filesystem::is_directory(status)) {
    throw Error(ErrorKind::kNotFound, "no such directory")
        .in(directory)
        .expected("the directory where models lie")
        .found(kind_at(directory))
        .fix("name that directory");
  }
  const MemoryLimits limits = read_memory_limits();
  const ProbeFile probe(directory);
  std::optional<Bytes> alignment;
  std::vector<Finding> findings;
  findings.push_back(check_cpu());
  findings.push_back(check_memory(limits));
  findings.push_back(check_budget());
  findings.push_back(check_swap(limits));
  findings.push_back(check_io_uring(probe));
  findings.push_back(check_direct_reads(directory, probe, alignment));
  const std::vector<FoundGpu> gpus = find_gpus();
  for (Finding& finding : check_gpus(gpus)) findings.push_back(std::move(finding));
  if (!profile.empty()) findings.push_back(check_device(profile));
  if (common.json) {
    print_json(findings, limits, alignment, gpus);
  } else {
    print_lines(findings, common.quiet);
  }
}

}  // namespace doctor_command
}  // namespace

void add_doctor(Command& app) {
  using namespace doctor_command;
  struct Options {
    CommonFlags common;
    std::string directory = ".", profile;
  };
  Command* command = app.add_command("doctor", "Check what this machine offers, and say what to change");
  auto options = std::make_shared<Options>();
  command->add_argument("DIRECTORY", &options->directory, "Where models lie: its disk is checked")
      ->show_default();
  command->add_option(
      Setting::kProfile, &options->profile,
      "Also show what the device costs with which this profile was measured (sluice profile)");
  add_common_flags(*command, options->common,
                   {.json = "Print one JSON object", .quiet = "Print only what needs attention"});
  command->footer("Examples:\n  sluice doctor\n  sluice doctor /data/models --json");
  command->callback([options] { doctor(options->directory, options->profile, options->common); });
}

}  // namespace sluice::app
