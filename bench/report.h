// Results of a benchmark for the page of `make bench`: with `--json FILE` a program also writes its rows
// there.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json/json.h"

namespace sluice::bench {

struct Row {
  std::string name;
  double bytes = 0, flops = 0;       // moved and computed per round; 0: not applicable
  std::vector<double> seconds = {};  // for each round; empty for a row of sizes

  // The limit of the row: another workload of the same rounds, and the share of its rate that this row
  // reached in each round. Empty: no measured limit applies.
  std::string limit = {};
  std::vector<double> shares = {};

  std::map<std::string, double> figures = {};  // further figures by their names on the page: "x zstd 3"
  bool detail = false;                         // in the file, but on the page only if asked for
};

// amount/seconds of each round as a share of limit_amount/limit_seconds of that round. REQUIRES: equally many
// rounds.
std::vector<double> shares_of(double amount, const std::vector<double>& seconds, double limit_amount,
                              const std::vector<double>& limit_seconds);

class Report {
 public:
  Report(std::string program, int argc, char** argv);  // looks for `--json FILE`
  void add(const Row& row);
  void write() const;  // writes the file, if one was asked for; Error(kIo)

 private:
  std::string program_, path_;
  Json rows_ = Json::array();
};

}  // namespace sluice::bench
