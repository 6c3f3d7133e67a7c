#include "report.h"

#include "base/error.h"
#include "base/files/file.h"
#include "measure.h"

namespace sluice::bench {

std::vector<double> shares_of(double amount, const std::vector<double>& seconds, double limit_amount,
                              const std::vector<double>& limit_seconds) {
  SLUICE_CHECK(seconds.size() == limit_seconds.size());
  std::vector<double> shares;
  for (std::size_t i = 0; i < seconds.size(); ++i)
    shares.push_back(amount / seconds[i] / (limit_amount / limit_seconds[i]));
  return shares;
}

Report::Report(std::string program, int argc, char** argv)
    : program_(std::move(program)), path_(option(argc, argv, "json", "")) {}

void Report::add(const Row& row) {
  const auto spread = [](const std::vector<double>& values, double low, double high) -> Json {
    return {
        {"median", quantile(values, 0.5)}, {"low", quantile(values, low)}, {"high", quantile(values, high)}};
  };
  Json json = {{"name", row.name}};
  if (!row.seconds.empty()) {
    json["rounds"] = row.seconds.size();
    json["seconds"] = spread(row.seconds, 0, 1);
  }
  if (row.bytes > 0) json["bytes"] = row.bytes;
  if (row.flops > 0) json["flops"] = row.flops;
  if (!row.limit.empty()) json["limit"] = row.limit;
  if (!row.shares.empty()) json["share"] = spread(row.shares, 0.25, 0.75);
  if (!row.figures.empty()) json["figures"] = row.figures;
  if (row.detail) json["detail"] = true;
  rows_.push_back(std::move(json));
}

void Report::write() const {
  if (path_.empty()) return;
  write_file_atomically(path_, Json{{"program", program_}, {"rows", rows_}}.dump(1) + "\n");
}

}  // namespace sluice::bench
