// A service as rmw_fastrtps makes it: it answers each request with the bytes
// that the request asks for.
#include "fast.hpp"
#include "ledger.h"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <set>
#include <thread>

namespace {

// Who is matched: clients' reply readers and their request writers.
class Matches : public fdds::DataWriterListener, public fdds::DataReaderListener {
public:
  void on_publication_matched(fdds::DataWriter *, const fdds::PublicationMatchedStatus & status) override
  {
    note(readers_, rtps::iHandle2GUID(status.last_subscription_handle), status.current_count_change);
  }

  void on_subscription_matched(fdds::DataReader *, const fdds::SubscriptionMatchedStatus & status) override
  {
    note(writers_, rtps::iHandle2GUID(status.last_publication_handle), status.current_count_change);
  }

  // Waits up to 100 ms for the reader, as rmw_fastrtps does, unless the client
  // is gone.
  bool await_reader(const rtps::GUID_t & reader, const rtps::GUID_t & writer)
  {
    std::unique_lock<std::mutex> lock(mutex_);
    if (writers_.count(writer) == 0)
      return false;
    return changed_.wait_for(lock, std::chrono::milliseconds(100), [&] { return readers_.count(reader) != 0; });
  }

private:
  using Guids = std::set<rtps::GUID_t>;

  void note(Guids & guids, const rtps::GUID_t & guid, int change)
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (change > 0)
      guids.insert(guid);
    else if (change < 0)
      guids.erase(guid);
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Guids readers_, writers_;
};

struct Server {
  server_options options;
  Matches matches;
  ServiceEnd end;
  int64_t requests = 0, replies = 0, dropped = 0;

  void answer(const Octets & request, const fdds::SampleInfo & info)
  {
    requests++;
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(options.delay_ms));
    const rtps::GUID_t & writer = info.sample_identity.writer_guid();
    rtps::GUID_t client = info.related_sample_identity.writer_guid();
    if (client == rtps::GUID_t::unknown()) {
      client = writer;  // an old client: no reader to wait for
    } else if (!matches.await_reader(client, writer)) {
      dropped++;
      std::fprintf(stderr, "dropped a reply: its client is gone or its reader is not known\n");
      return;
    }
    Octets reply(wanted_reply_size(request.data(), request.size(), options.name));
    put_reply(reply.data(), reply.size(), options.name);
    rtps::WriteParams params;
    params.related_sample_identity().writer_guid() = client;
    params.related_sample_identity().sequence_number() = info.sample_identity.sequence_number();
    if (!end.writer->write(&reply, params))
      die("cannot write a reply");
    replies++;
  }
};

}  // namespace

int main(int argc, char ** argv)
{
  Server s;
  parse_server_options(argc, argv, &s.options);
  setup_program();
  s.end = new_service_end(s.options.service, s.options.domain, Role::server, &s.matches, &s.matches);
  std::printf("{\"ready\":true,\"name\":\"%s\"}\n", s.options.name);
  while (!stopping()) {
    s.end.reader->wait_for_unread_message({0, 100 * 1000 * 1000});
    Octets request;
    fdds::SampleInfo info;
    while (!stopping() && s.end.reader->take_next_sample(&request, &info) == ReturnCode_t::RETCODE_OK)
      if (info.valid_data)
        s.answer(request, info);
  }
  std::printf("{\"summary\":true,\"name\":\"%s\",\"requests\":%lld,\"replies\":%lld,\"dropped\":%lld}\n", s.options.name,
    static_cast<long long>(s.requests), static_cast<long long>(s.replies), static_cast<long long>(s.dropped));
  finish(0, delete_service_end, &s.end);
}
