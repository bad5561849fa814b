# The service of workload http.ruby, and the ruby application of startup and
# density: Sinatra on Puma renders an ERB template with texts from memory.
#
#   ruby server.rb PORT [WORKERS] [TEXTS] [THREADS]
#
# GET / answers 200 with a page that always has the same length: TEXTS (default
# 4) of 100 texts of 1024 letters and digits, others at each request. WORKERS
# (default 1) processes share the port, each with THREADS (default 5) threads; one alone
# runs without Puma's cluster.
require "sinatra/base"
require "puma"
require "puma/configuration"
require "puma/launcher"

PORT, WORKERS, TEXTS, THREADS = [8080, 1, 4, 5].each_with_index.map do |default, i|
  n = ARGV[i] ? Integer(ARGV[i], 10, exception: false) : default
  abort "usage: ruby server.rb PORT [WORKERS] [TEXTS] [THREADS]" if n.nil? || n.negative? || (i.positive? && n.zero?)
  n
end

# The same texts on every machine: a linear congruential generator (Numerical
# Recipes, chapter 7.1) instead of a database filled at random.
class Lcg
  def initialize = @state = 1

  def next(n)
    @state = (@state * 1_664_525 + 1_013_904_223) & 0xffff_ffff
    @state * n >> 32
  end
end

# Service is the application.
class Service < Sinatra::Base
  set :environment, :production
  set :views, __dir__

  LETTERS = [*"A".."Z", *"a".."z", *"0".."9"].freeze
  lcg = Lcg.new
  POOL = Array.new(100) { Array.new(1024) { LETTERS[lcg.next(62)] }.join.freeze }.freeze

  get "/" do
    # Each thread draws for itself, so that they share no lock.
    mine = Thread.current[:lcg] ||= Lcg.new
    erb :page, locals: { texts: Array.new(TEXTS) { POOL[mine.next(POOL.size)] } }
  end
end

config = Puma::Configuration.new do |c|
  c.bind "tcp://0.0.0.0:#{PORT}"
  c.workers(WORKERS > 1 ? WORKERS : 0)
  c.threads THREADS, THREADS
  c.environment "production"
  c.preload_app! if WORKERS > 1
  c.app Service
end
begin
  Puma::Launcher.new(config, events: Puma::Events.new($stderr, $stderr)).run
rescue SystemCallError => e
  abort "cannot serve port #{PORT}: #{e.message}"
end
