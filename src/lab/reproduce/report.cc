#include "lab/reproduce/report.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"

namespace sluice::lab {
namespace {

std::string cell(std::string text) {
  std::string out;
  for (const char c : text)
    out += c == '|' ? std::string("\\|") : c == '\n' ? std::string(" ") : std::string(1, c);
  return out;
}

}  // namespace

std::string to_markdown(const Report& report) {
  std::string text =
      fmt::format("# {}\n\nMachine: {}\n\nMade by: `{}`\n\n", report.title, report.machine, report.command);
  text +=
      "Mode: R a real run on this machine, S real routing replayed with a virtual clock, A arithmetic or "
      "counted bits, N cannot be "
      "shown here.\n\n| ID | quantity | paper | here | mode | conditions |\n|---|---|---|---|---|---|\n";
  for (const ReportRow& row : report.rows)
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", cell(row.id), cell(row.quantity),
                        cell(row.paper), cell(row.ours), static_cast<char>(row.evidence), cell(row.note));
  text += "\nOne row at a time:\n\n";
  if (!report.prepare.empty()) text += fmt::format("- first: `{}`\n", report.prepare);
  for (const ReportRow& row : report.rows)
    if (!row.command.empty() && row.command != report.command)
      text += fmt::format("- {}: `{}`\n", row.id, row.command);
  for (const ReportSection& section : report.sections)
    text += fmt::format("\n## {}\n\n{}\n", section.heading, section.markdown);
  for (const ReportPicture& picture : report.pictures)
    text += fmt::format("\n![{}]({})\n\n{}\n", picture.caption, picture.file, picture.caption);
  return text;
}

Json to_json(const Report& report) {
  Json rows = Json::array(), pictures = Json::array();
  for (const ReportRow& row : report.rows)
    rows.push_back({{"id", row.id},
                    {"quantity", row.quantity},
                    {"paper", row.paper},
                    {"ours", row.ours},
                    {"mode", std::string(1, static_cast<char>(row.evidence))},
                    {"note", row.note},
                    {"command", row.command}});
  for (const ReportPicture& picture : report.pictures) pictures.push_back(picture.file);
  return {{"title", report.title},
          {"machine", report.machine},
          {"command", report.command},
          {"prepare", report.prepare},
          {"rows", rows},
          {"pictures", pictures},
          {"data", report.data}};
}

void write_report(const Report& report, const std::string& directory, const std::string& name) {
  std::error_code code;
  std::filesystem::create_directories(directory, code);
  if (code) throw io_error("mkdir", directory, code.value());
  for (const ReportPicture& picture : report.pictures)
    write_file_atomically(directory + "/" + picture.file, picture.svg);
  write_file_atomically(directory + "/" + name + ".json",
                        to_json(report).dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  write_file_atomically(directory + "/" + name + ".md", to_markdown(report));
}

}  // namespace sluice::lab
