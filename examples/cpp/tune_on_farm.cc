// Tunes a model on a farm and fetches the log that a build pins:
//
//     tune_on_farm ADDRESS TLS_FOLDER MODEL.onnx SECONDS SNAPSHOT.db
//
// TLS_FOLDER is what `honed issue submit NAME` wrote; "-" is plaintext to a server on this machine.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "hone/client.h"

namespace {

// Prints why, and ends.
void Check(const hone::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "tune_on_farm: %s\n", status.ToString().c_str());
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: tune_on_farm ADDRESS TLS_FOLDER MODEL.onnx SECONDS SNAPSHOT.db\n");
    return 2;
  }
  hone::ClientOptions options{.address = argv[1], .tls_folder = argv[2]};
  if (options.tls_folder == "-") {
    options.tls_folder.clear();
    options.insecure_loopback = true;
  }
  std::unique_ptr<hone::Client> client;
  Check(hone::Client::Connect(options, &client));

  // The model is cut into workloads here; it and its constants stay here.
  hone::SessionRequest request;
  request.seconds = std::atof(argv[4]);
  Check(client->TasksOfModel(argv[3], {}, &request));
  hone::StartedSession session;
  Check(client->StartSession(request, &session));
  std::printf("session %s, %zu tasks for %s\n", session.id.c_str(), request.tasks.size(),
              request.target.c_str());

  int64_t measured = 0, failed = 0;
  hone::SessionInfo end;
  Check(client->WatchSession(session.id, 0, [&](const hone::SessionEvent& event) {
    if (event.kind == hone::SessionEvent::Kind::kMeasured) {
      ++measured;
      if (event.outcome != "ok") ++failed;
    } else if (event.kind == hone::SessionEvent::Kind::kDecided) {
      std::printf("%-24s %8.2f us, by default %8.2f us\n",
                  request.tasks[static_cast<size_t>(event.task)].name.c_str(),
                  (event.replaced ? event.best_ns : event.default_ns) * 1e-3,
                  event.default_ns * 1e-3);
    } else if (event.kind == hone::SessionEvent::Kind::kEnded) {
      end = event.info;
    }
    return true;
  }));
  std::printf("%lld measured, %lld failed; ended: %s\n", static_cast<long long>(measured),
              static_cast<long long>(failed), end.reason.c_str());

  std::vector<hone::Record> records;
  Check(client->FindRecords({.workload = request.tasks.front().workload,
                             .target = request.target,
                             .device_class = end.device_class,
                             .limit = 1},
                            &records));
  for (const hone::Record& record : records) {
    std::printf("best of %s: %.2f us, %s\n", request.tasks.front().name.c_str(),
                record.median_ns * 1e-3, record.rigor.c_str());
  }

  std::string sha256;
  Check(client->Snapshot(argv[5], &sha256));
  std::printf("hone compile %s --snapshot %s@sha256:%s -o model.hone\n", argv[3], argv[5],
              sha256.c_str());
  return end.state == hone::SessionState::kFinished ? 0 : 1;
}
