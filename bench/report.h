// What a benchmark measured, for the page of `make bench`: with `--json FILE` a program also writes its rows
// there.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"

namespace sluice::bench {

struct Row {
  std::string name;
  double bytes = 0, flops = 0;       // that one round moves and computes; 0: not what this is about
  std::vector<double> seconds = {};  // of each round; none for a row of sizes

  // What the row is held against: another workload of the same rounds, and the share of its rate that this
  // one reached in each of them. Empty: nothing bounds it that was measured.
  std::string limit = {};
  std::vector<double> shares = {};

  std::map<std::string, double> figures = {};  // others, by the name that the page shows: "x zstd 3"
  bool detail = false;                         // in the file, but not on the page unless asked for
};

// amount/seconds of each round as a share of limit_amount/limit_seconds of that round. REQUIRES: as many
// rounds of both.
std::vector<double> shares_of(double amount, const std::vector<double>& seconds, double limit_amount,
                              const std::vector<double>& limit_seconds);

class Report {
 public:
  Report(std::string program, int argc, char** argv);  // looks for `--json FILE`
  void add(const Row& row);
  void write() const;  // to the file, if one was asked for. Error(kIo)

 private:
  std::string program_, path_;
  Json rows_ = Json::array();
};

}  // namespace sluice::bench
