// How --help shows options.
#pragma once

#include <CLI/CLI.hpp>

namespace sluice::app {

// CLI11's own, but an option's value is called by one word: no type of C++ and no list of its checks.
class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override;
};

}  // namespace sluice::app
