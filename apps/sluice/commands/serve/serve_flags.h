// What the user of `sluice serve` typed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flags/engine_flags.h"
#include "flags/sampling_flags.h"

namespace sluice::app {

class Command;

struct ServeFlags {
  EngineFlags engine;
  SamplingFlags sampling;
  std::string chat_template, tool_format, alias;
  std::string host = "127.0.0.1", unix_path;
  std::int64_t port = 8080;
  std::vector<std::string> api_keys, allowed_hosts, cors_origins;
  std::string api_key_file, ui_dir, log_prompts;
  bool no_auth = false, strict_model = false, no_ui = false, log_json = false, trust_special = false,
       keep_billing_header = false;
  std::int64_t parallel = 4, kv_tokens = 0, queue = 64;  // kv_tokens 0: by the budget
  double decode_share = 0.5, sse_ping_s = 15, drain_s = 30;
};

// Error(kUsage) for a flag of sampling whose value no request may have either.
void check_sampling(const SamplingFlags& flags);

void add_serve_flags(Command& command, ServeFlags& flags);

}  // namespace sluice::app
