# frozen_string_literal: true
require "json"
module Shop
  VERSION = "1.0"
  # A cart.
  class Cart < Base
    include Enumerable
    attr_accessor :items, :name
    class Error < StandardError; end
    STATES = %w[new paid].freeze
    def initialize(items = [])
      @items = items
    end
    class << self
      def build(*args) = new(*args)
      private def secret; end
    end
    def self.load(id)
      new
    end
    def each(&block)
      return enum_for(:each) unless block
      items.each(&block)
    end
    def total = items.sum(&:price)
    def ==(other)
      true
    end
    def [](i) = items[i]
    def empty?; items.empty?; end
    def save!
      yield self
    end
    private
    def helper
    end
    define_method(:dynamic) { |x| x }
    scope :paid, -> { where(paid: true) }
    Point = Struct.new(:x, :y) do
      def dist; Math.sqrt(x); end
    end
  end
  module Helpers
    module_function
    def fmt(x) = x.to_s
  end
end
class Shop::Order::Line; def sku; end; end
def top_level(a, b: 2, **rest)
end
describe "Cart" do
  it "adds" do
    expect(1).to eq(1)
  end
end
namespace :db do
  desc "Seed"
  task :seed => :environment do
    puts 1
  end
end
get "/orders" do
  "x"
end
