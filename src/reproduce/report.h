// The result of a reproduction: rows of published and own values, with pictures, as Markdown and JSON.
#pragma once

#include <string>
#include <vector>

#include "base/json/json.h"

namespace sluice::reproduce {

// How our value was obtained (SPEC §6, "Feasibility").
enum class Evidence : char {
  kRun = 'R',         // a real run on this machine
  kReplay = 'S',      // recorded or synthetic routing, replayed with a virtual clock
  kArithmetic = 'A',  // exact arithmetic or counted bits
  kNone = 'N',        // cannot be shown here; the note gives the reason
};

struct ReportRow {
  std::string id, quantity;           // as in SPEC §6
  std::string paper, ours;            // "n/a" for a missing value
  std::vector<Evidence> evidence;     // in the order of `ours`
  std::string note;                   // conditions and differences; the reason for kNone
  std::vector<std::string> commands;  // commands for this row alone; empty: the whole report's command
};
std::string mode_text(const ReportRow& row);  // "S, R"

// Everything that figures depend on. Two reports with equal hashes may be compared figure by figure.
struct ReportConfiguration {
  std::string model;         // model identity (docs/trace-format.md, section 2)
  std::string flags;         // flags that change figures
  std::string machine;       // machine class: processor, threads
  std::string version;       // version of this program
  std::string hash() const;  // 12 hexadecimal digits
};

struct ReportSection {
  std::string heading, markdown;
};
struct ReportPicture {
  std::string file, caption, svg;
};

struct Report {
  std::string title, machine, command;
  ReportConfiguration configuration;
  std::string prepare;  // a command to run once before those of single rows; may be empty
  std::string played;   // RoutingTrace::played() of the recorded routing; empty: its model's own, or none
  std::vector<ReportRow> rows;
  std::vector<ReportSection> sections;
  std::vector<ReportPicture> pictures;
  Json data = Json::object();  // all figures behind the rows
};

std::string to_markdown(const Report& report);
Json to_json(const Report& report);
// Writes title.md, .json (by `name`) and the pictures into `directory`, which is created if missing.
// Error(kIo).
void write_report(const Report& report, const std::string& directory, const std::string& name);

}  // namespace sluice::reproduce
