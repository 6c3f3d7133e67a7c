// What a reproduction found: rows of published and own values, with pictures, as Markdown and JSON.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace sluice::lab {

// How our value came about (SPEC §6, "Feasibility").
enum class Evidence : char {
  kRun = 'R',         // a real run on this machine
  kReplay = 'S',      // recorded or synthetic routing, replayed with a virtual clock
  kArithmetic = 'A',  // exact arithmetic or counted bits
  kNone = 'N',        // cannot be shown here; the note says why
};

struct ReportRow {
  std::string id, quantity;           // of SPEC §6
  std::string paper, ours;            // "n/a" where there is nothing
  std::vector<Evidence> evidence;     // in the order of `ours`
  std::string note;                   // conditions, and what differs; the reason of kNone
  std::vector<std::string> commands;  // that show this row alone; empty: the whole report's
};
std::string mode_text(const ReportRow& row);  // "S, R"

// All that figures depend on. Two reports of equal hash may be compared figure by figure.
struct ReportConfiguration {
  std::string model;         // identity (docs/trace-format.md, section 2)
  std::string flags;         // that change figures
  std::string machine;       // its class: processor, threads
  std::string version;       // of this program
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
  std::string prepare;  // a command to give once before those of single rows; may be empty
  std::vector<ReportRow> rows;
  std::vector<ReportSection> sections;
  std::vector<ReportPicture> pictures;
  Json data = Json::object();  // all figures behind the rows
};

std::string to_markdown(const Report& report);
Json to_json(const Report& report);
// title.md, .json (by `name`) and the pictures into `directory`, made if need be. Error(kIo).
void write_report(const Report& report, const std::string& directory, const std::string& name);

}  // namespace sluice::lab
