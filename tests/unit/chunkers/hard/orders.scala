package com.shop
package orders
import scala.collection.mutable
/** An order. */
@SerialVersionUID(1L)
final case class Order(id: Long, lines: List[Line] = Nil) extends Base with Ordered[Order] {
  private val cache = mutable.Map.empty[String, Int]
  lazy val total: Double = lines.map(_.price).sum
  type Key = String
  def this(s: String) = this(s.toLong)
  override def compare(that: Order): Int = id compare that.id
  def +(o: Order): Order = this
  def find[T <: Line](k: Key)(implicit ev: Ordering[T]): Option[T] = None
  class Inner { def deep() = 1 }
}
object Order { def apply(s: String): Order = new Order(s); implicit val ord: Ordering[Order] = Ordering.by(_.id) }
sealed trait Status
case object New extends Status
trait Repo[F[_]] { def find(id: Long): F[Order]; def all: F[List[Order]] }
enum Color(val c: Int): 
  case Red extends Color(1)
  case Green extends Color(2)
given Ordering[Int] with
  def compare(a: Int, b: Int) = a - b
extension (s: String)
  def shout: String = s.toUpperCase
  def twice = s + s
def topLevel(x: Int): Int =
  x + 1
opaque type Id = Long
abstract class Base { def go(): Unit }
package object utils { def helper = 1 }
